import nodemailer from "nodemailer";
import {
  type SubmissionOptions,
  SubmissionServer,
} from "../../../../src/channels/email/submission/submission-server.ts";
import { mailDoor } from "../../../../src/channels/email/wiring/submission.ts";
import { issueCertificate, SUBJECT } from "../../../../src/runtime/certificates/certificate-authority.ts";
import { systemClock } from "../../../../src/runtime/system-clock.ts";
import type { Front } from "../../../http/support/front.ts";
import { QuietTelemetry } from "../../../support/quiet-telemetry.ts";
import { SmtpClient } from "./smtp-client.ts";

export const PLATFORM_SENDER = "no-reply@platform.test";

const { certificatePem, privateKeyPem } = await issueCertificate(
  {
    subject: [[SUBJECT.commonName, "Test"]],
    notBeforeMs: Date.now() - 60_000,
    notAfterMs: Date.now() + 3_600_000,
    purpose: "server",
  },
  null,
);
export const CERTIFICATE = { cert: certificatePem, key: privateKeyPem };

export interface Listening {
  readonly server: SubmissionServer;
  readonly port: number;
}

/** Servers over the API of `front`, and their clients. */
export class SubmissionWorld {
  private readonly servers: SubmissionServer[] = [];
  private clients: { close(): void }[] = [];

  constructor(private readonly front: Front) {}

  async listen(changes: Partial<SubmissionOptions> = {}, port = 0): Promise<Listening> {
    const server = new SubmissionServer({
      hostName: "smtp.platform.test",
      certificate: CERTIFICATE,
      isSelfSigned: true,
      ...mailDoor(this.front.ports),
      platformSender: PLATFORM_SENDER,
      clock: systemClock,
      telemetry: new QuietTelemetry(),
      ...changes,
    });
    this.servers.push(server);
    return { server, port: await server.listen({ host: "127.0.0.1", port }) };
  }

  async dial({ port }: Listening, how?: { readonly closes: boolean }): Promise<SmtpClient> {
    const client = await SmtpClient.dial(port, how);
    this.clients.push(client);
    return client;
  }

  silent({ port }: Listening): SmtpClient {
    const client = SmtpClient.silent(port);
    this.clients.push(client);
    return client;
  }

  async loggedIn(at: Listening, apiKey: string): Promise<SmtpClient> {
    const client = await this.dial(at);
    const reply = await client.logIn(apiKey);
    if (!reply.startsWith("235")) throw new Error(reply);
    return client;
  }

  /** nodemailer, which trusts the server's certificate. */
  mailer({ port }: Listening, apiKey: string) {
    const auth = { user: "acme", pass: apiKey };
    const transport = nodemailer.createTransport({
      host: "127.0.0.1",
      port,
      requireTLS: true,
      auth,
      tls: { ca: CERTIFICATE.cert },
    });
    this.clients.push(transport);
    return transport;
  }

  hangUp(): void {
    for (const client of this.clients) client.close();
    this.clients = [];
  }

  async stop(): Promise<void> {
    this.hangUp();
    await Promise.all(this.servers.map((server) => server.stop()));
  }
}

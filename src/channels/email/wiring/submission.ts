import { createPrivateKey, X509Certificate } from "node:crypto";
import { existsSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import type { Config } from "../../../config/config.ts";
import { generatedAs } from "../../../config/generated-secret.ts";
import { chooseMailHost } from "../../../config/mail-names.ts";
import { type Clock, sleep, type Timer } from "../../../domain/clock.ts";
import { ConfigurationError } from "../../../domain/errors.ts";
import type { Telemetry } from "../../../domain/telemetry.ts";
import { type DoorPorts, FrontDoor } from "../../../http/front-door.ts";
import { issueCertificate, SUBJECT } from "../../../runtime/certificates/certificate-authority.ts";
import { openListener } from "../../../runtime/open-listener.ts";
import type { Shutdown } from "../../../runtime/shutdown.ts";
import { sendEmail } from "../routes.ts";
import { KeptMails } from "../submission/kept-mails.ts";
import { type ServerCertificate, type SubmissionPorts, SubmissionServer } from "../submission/submission-server.ts";

/** Takes mail by SMTP where this process plays the role `smtp`. Returns `host:port`, or null. */
export async function startSubmission(config: Config, shutdown: Shutdown, ports: DoorPorts): Promise<string | null> {
  if (!config.roles.includes("smtp")) return null;
  const { clock, telemetry } = ports;
  const { certificate, isSelfSigned, files } = await loadCertificate(config);
  const server = new SubmissionServer({
    hostName: chooseMailHost(config),
    certificate,
    isSelfSigned,
    ...mailDoor(ports),
    platformSender: config.mailFrom.address,
    clock,
    telemetry,
  });
  const renewal = files === null ? null : new Renewal(files, server, { clock, telemetry });
  shutdown.add("work", "smtp", async () => {
    renewal?.stop();
    await sleep(clock, shutdown.graceMs);
    await server.stop();
  });
  const host = config.submissionHost ?? config.host;
  const hostSetting = config.submissionHost === null ? "HOST" : "SMTP_HOST";
  const at = { host, hostSetting, port: config.submissionPort, portSetting: "SMTP_PORT" };
  const port = await openListener(at, () => server.listen(at));
  renewal?.start();
  if (isSelfSigned) {
    telemetry.log("warn", "SMTP has a self-signed certificate, which mail programs refuse: see SMTP_TLS_CERT");
  }
  return `${host.includes(":") ? `[${host}]` : host}:${port}`;
}

/** A door of its own, with room for bodies of its own: each recipient is a request like the API's. */
export function mailDoor(ports: DoorPorts): Pick<SubmissionPorts, "findHolder" | "admit" | "send" | "kept"> {
  const kept = new KeptMails();
  // Mail that comes by SMTP carries no passes.
  const endpoint = sendEmail(null, (tenant, body) => kept.accept(tenant, body));
  // Requests by SMTP, in metrics and traces.
  const route = { name: "smtp", path: endpoint.path };
  const door = new FrontDoor({ ...ports, wrongTokens: null });
  return {
    kept,
    findHolder: (apiKey) => ports.directory.byApiKey(apiKey),
    admit: (tenant) => door.admit({ isCounted: false, rate: null }, tenant),
    send: (request, isCounted) =>
      door.serve(route, request, (exchange) => {
        exchange.isCounted = isCounted;
        return endpoint.serve(door, exchange, {});
      }),
  };
}

interface CertificateFiles {
  readonly cert: string;
  readonly key: string;
}

interface Loaded {
  readonly certificate: ServerCertificate;
  readonly isSelfSigned: boolean;
  /** Null: it is not the operator's. */
  readonly files: CertificateFiles | null;
}

async function loadCertificate({ home, submissionCertificate: cert, submissionKey: key }: Config): Promise<Loaded> {
  if (cert === null || key === null) {
    return { certificate: await selfSigned(join(home, "smtp-certificate.pem")), isSelfSigned: true, files: null };
  }
  const files = { cert, key };
  try {
    return { certificate: read(files), isSelfSigned: false, files };
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new ConfigurationError(
      `SMTP_TLS_CERT is "${cert}" and SMTP_TLS_KEY "${key}"; they should be a certificate and its key (${why})`,
    );
  }
}

/** Throws unless the files hold a certificate and its key. */
function read(files: CertificateFiles): ServerCertificate {
  return matching({ cert: readFileSync(files.cert, "utf8"), key: readFileSync(files.key, "utf8") });
}

function matching({ cert, key }: ServerCertificate): ServerCertificate {
  if (!new X509Certificate(cert).checkPrivateKey(createPrivateKey(key))) {
    throw new Error("the key belongs to another certificate");
  }
  return { cert, key };
}

const YEAR_MS = 365 * 24 * 60 * 60 * 1000;
const VALID_YEARS = 10;

/** Made once, so that a client can be told to trust it. The file has certificate and key. */
async function selfSigned(file: string): Promise<ServerCertificate> {
  const made = existsSync(file) ? "" : await makeCertificate();
  return generatedAs(
    file,
    () => made,
    (text) => {
      const at = text.indexOf("-----BEGIN PRIVATE KEY-----");
      return matching({ cert: text.slice(0, at), key: text.slice(at) });
    },
  );
}

async function makeCertificate(): Promise<string> {
  const nowMs = Date.now();
  const { certificatePem, privateKeyPem } = await issueCertificate(
    {
      subject: [[SUBJECT.commonName, "Waybill"]],
      notBeforeMs: nowMs - 60 * 60 * 1000,
      notAfterMs: nowMs + VALID_YEARS * YEAR_MS,
      purpose: "server",
    },
    null,
  );
  return certificatePem + privateKeyPem;
}

const RENEWAL_LOOK_MS = 60_000;

/** Reads the certificate again when its file changes, as those who renew it every few weeks leave it. */
class Renewal {
  private timer: Timer | null = null;
  private seen: number;

  constructor(
    private readonly files: CertificateFiles,
    private readonly server: SubmissionServer,
    private readonly ports: { readonly clock: Clock; readonly telemetry: Telemetry },
  ) {
    this.seen = changedMs(files);
  }

  start(): void {
    this.timer = this.ports.clock.setTimer(RENEWAL_LOOK_MS, () => this.look());
  }

  stop(): void {
    this.timer?.cancel();
  }

  private look(): void {
    const { telemetry } = this.ports;
    try {
      const changed = changedMs(this.files);
      if (changed !== this.seen) {
        this.server.useCertificate(read(this.files));
        this.seen = changed;
        telemetry.log("info", "SMTP uses the renewed certificate");
      }
    } catch (error) {
      // Perhaps only one of the two is written yet: the former ones stay until both fit.
      telemetry.log("warn", "the SMTP certificate could not be read again", { error: String(error) });
    }
    this.start();
  }
}

/** A number that changes with either file. */
function changedMs({ cert, key }: CertificateFiles): number {
  return statSync(cert).mtimeMs + statSync(key).mtimeMs;
}

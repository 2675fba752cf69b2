import { type Static, Type } from "@sinclair/typebox";
import type { ChannelName } from "../domain/jobs/job.ts";
import type { SandboxView } from "../domain/jobs/report.ts";
import { ApiError } from "../http/api-error.ts";
import { type Endpoint, endpoint, reply } from "../http/endpoint.ts";
import { OPERATOR_NOT_FOUND } from "../http/failures.ts";
import { limitParameter, type QueryParameter, readQuery } from "../http/parameters.ts";
import { enumSchema, listSchema, Timestamp } from "../http/schemas.ts";

function messageSchema(channels: readonly ChannelName[]) {
  return Type.Object({
    channel: enumSchema(channels),
    received_at: Timestamp,
    from: Type.String(),
    to: Type.String(),
    recipients: Type.Optional(
      Type.Array(Type.String(), { description: "All recipients of the envelope, if there are several." }),
    ),
    attachments: Type.Optional(
      Type.Array(Type.Object({ filename: Type.String(), bytes: Type.Integer() }), {
        description: "The files that it carries, with their sizes.",
      }),
    ),
    subject: Type.String(),
    source: Type.String({ description: "As it came over the wire; the first 2 MiB." }),
  });
}

const MESSAGE = {
  channel: "email",
  received_at: "2026-11-21T07:30:00.000Z",
  from: "no-reply@waybill.test",
  to: "ann@example.com",
  subject: "Hello",
  source: "From: Waybill <no-reply@waybill.test>\r\nTo: ann@example.com\r\nSubject: Hello\r\n\r\nHello",
};

const Complaint = Type.Object({ logged_at: Timestamp, message: Type.String() });

export interface SandboxPorts {
  /** Null: real providers are in use. */
  readonly sandbox: SandboxView | null;
  /** Newest first. */
  readonly deviceLog: {
    latest(limit: number): readonly Static<typeof Complaint>[] | Promise<readonly Static<typeof Complaint>[]>;
  };
}

/**
 * Messages that reached the sandbox providers, and complaints that devices logged. Without a sandbox these addresses answer 404
 * before the query is checked.
 */
export function sandboxEndpoints(
  { sandbox, deviceLog }: SandboxPorts,
  channels: readonly ChannelName[],
): readonly Endpoint[] {
  const limited = { ...limitParameter, description: "At most this many; above 500 counts as 500." };
  return [
    endpoint({
      method: "GET",
      path: "/dash/api/sandbox/messages",
      name: "operator",
      operation: "listSandboxMessages",
      tag: "Sandbox",
      summary: "List the messages that the sandbox received, newest first",
      caller: "operator",
      query: { to: toParameter, limit: limited },
      answers: {
        200: {
          description: "What it received.",
          schema: listSchema("SandboxMessages", "messages", messageSchema(channels)),
          examples: [{ messages: [MESSAGE] }],
        },
      },
      fails: { 404: OPERATOR_NOT_FOUND },
      async handle(_, exchange) {
        if (sandbox === null) throw noSandbox();
        const { to, limit } = readQuery(exchange.request, ["to", "limit"]);
        return reply(200, { messages: await sandbox.messages(toParameter.read(to), limited.read(limit)) });
      },
    }),
    endpoint({
      method: "GET",
      path: "/dash/api/sandbox/device-log",
      name: "operator",
      operation: "listDeviceComplaints",
      tag: "Sandbox",
      summary: "List the complaints of devices to this process, newest first",
      caller: "operator",
      query: { limit: limited },
      answers: {
        200: {
          description: "Their complaints.",
          schema: listSchema("DeviceComplaints", "complaints", Complaint),
          examples: [
            { complaints: [{ logged_at: "2026-11-21T07:30:00Z", message: "Passbook: could not load the pass" }] },
          ],
        },
      },
      fails: { 404: OPERATOR_NOT_FOUND },
      async handle(_, exchange) {
        if (sandbox === null) throw noSandbox();
        const { limit } = readQuery(exchange.request, ["limit"]);
        return reply(200, { complaints: await deviceLog.latest(limited.read(limit)) });
      },
    }),
  ];
}

const toParameter: QueryParameter<string | null> = {
  description: "Only to this address.",
  schema: Type.String(),
  read: (text) => text ?? null,
};

function noSandbox(): ApiError {
  return new ApiError(404, "there is no sandbox: real providers are in use");
}

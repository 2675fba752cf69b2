import { CallbackData } from "../../../src/channels/whatsapp/callbacks/callback-keys.ts";
import type { TemplatePayload } from "../../../src/channels/whatsapp/payload.ts";
import { WhatsappChannel } from "../../../src/channels/whatsapp/whatsapp-channel.ts";
import type { QueuedJob } from "../../../src/domain/jobs/job.ts";
import type { Tenant } from "../../../src/domain/tenants/tenant.ts";
import { systemClock } from "../../../src/runtime/system-clock.ts";
import { LONGEST_WAITS } from "../../support/longest-waits.ts";
import { QuietTelemetry } from "../../support/quiet-telemetry.ts";
import { aTenant } from "../../support/tenants.ts";

export const JOB_ID = "0197f3a0-1111-7222-8333-444455556666";
export const TOKEN = "EAAGm0PX4ZCpsBAKZCtoken";
export const CALLBACKS = new CallbackData([new Uint8Array(32).fill(6)]);
export const PLATFORM = { phoneNumberId: "555", accessToken: TOKEN };

/** A tenant that sends from the platform's number, or from its own. */
export function chatTenant(overrides: Partial<Tenant> = {}, sender: Tenant["whatsapp"]["sender"] = null): Tenant {
  return aTenant({
    channels: new Set(["whatsapp"]),
    whatsapp: { sender, aliases: new Map(), templates: null },
    ...overrides,
  });
}

export function chatJob(payload: Partial<TemplatePayload> = {}, overrides: Partial<QueuedJob> = {}): QueuedJob {
  const whole = { to: "5491122334455", template: "order_update", language: "es", params: [], ...payload };
  return {
    jobId: JOB_ID,
    tenantId: "acme",
    channel: "whatsapp",
    entryId: "1-0",
    attempts: 0,
    recipient: whole.to,
    suppressed: null,
    payload: JSON.stringify(whole),
    ...overrides,
  };
}

/** Keeps the counts, as `name{labels}`. */
export class CountingTelemetry extends QuietTelemetry {
  readonly counted: string[] = [];
  override count(name?: string, labels?: Readonly<Record<string, string>>): void {
    this.counted.push(`${name}${JSON.stringify(labels ?? {})}`);
  }
}

export interface Call {
  readonly method: string;
  readonly path: string;
  /** The path with its query. */
  readonly target: string;
  readonly headers: Headers;
  readonly text: string;
  readonly clientPort: number;
}

/** A provider that gives the test's answers. */
export function startProvider(answer: (call: Call) => Response | Promise<Response>) {
  const calls: Call[] = [];
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    async fetch(request, self): Promise<Response> {
      const { method, headers, url } = request;
      const clientPort = self.requestIP(request)?.port ?? 0;
      const { pathname: path, search } = new URL(url);
      const call = { method, headers, path, target: `${path}${search}`, text: await request.text(), clientPort };
      calls.push(call);
      return await answer(call);
    },
  });
  return { url: `http://127.0.0.1:${server.port}`, calls, stop: () => server.stop(true) };
}

export const ACCEPTED = { messages: [{ id: "wamid.HBgN", message_status: "accepted" }] };

export function graphError(code: number, status: number, init: { message?: string; details?: string } = {}) {
  const { message = `(#${code}) Some title`, details } = init;
  const error = { message, type: "OAuthException", code, fbtrace_id: "x" };
  return { status, body: { error: details === undefined ? error : { ...error, error_data: { details } } } };
}

export function channelTo(apiUrl: string, options: Partial<ConstructorParameters<typeof WhatsappChannel>[0]> = {}) {
  return new WhatsappChannel({
    apiUrl,
    apiVersion: "v25.0",
    platform: { whatsapp: PLATFORM },
    callbacks: CALLBACKS,
    clock: systemClock,
    random: LONGEST_WAITS,
    telemetry: new QuietTelemetry(),
    ...options,
  });
}

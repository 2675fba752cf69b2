import { LinkTokens } from "../../../src/channels/email/links/link-tokens.ts";
import type { EmailPayload } from "../../../src/channels/email/payload.ts";
import { JobIds } from "../../../src/domain/ids.ts";
import type { QueuedJob } from "../../../src/domain/jobs/job.ts";
import { NetworkGuard } from "../../../src/runtime/network-guard.ts";
import { systemClock } from "../../../src/runtime/system-clock.ts";
import { systemRandom } from "../../../src/runtime/system-random.ts";

export const linkTokens = new LinkTokens([new Uint8Array(32).fill(5)]);
/** Allows tenants' own relays on this machine, where the tests' relays are, and nowhere else. */
export const HERE = new NetworkGuard({ allow: ["127.0.0.0/8", "::1/128"], publicAllowed: false });
/** The address of the links in the tests' messages, and the keys that sign them. */
export const LINKS = {
  publicUrl: "https://send.test",
  links: linkTokens,
  clock: systemClock,
  ownRelays: HERE,
  ehloName: "send.test",
};

/** The same limit for each step of a message (`SmtpTimeouts`). */
export function inEachStep(ms: number) {
  return { socketMs: ms, envelopeMs: ms, dataMs: ms, blockMs: ms, endMs: ms };
}

const ids = new JobIds(systemClock, systemRandom);

export function emailJob(payload: EmailPayload | string): QueuedJob {
  return {
    jobId: ids.next(),
    tenantId: "acme",
    channel: "email",
    entryId: "1-1",
    attempts: 0,
    recipient: "",
    suppressed: null,
    payload: typeof payload === "string" ? payload : JSON.stringify(payload),
  };
}

/** Names and unfolded values of a message's headers, in their order. */
export function parseHeaders(source: string): [name: string, value: string][] {
  const block = source.slice(0, source.indexOf("\r\n\r\n")).replace(/\r\n(?=[ \t])/g, "");
  return block
    .split("\r\n")
    .map((line) => [line.slice(0, line.indexOf(":")), line.slice(line.indexOf(":") + 1).trim()]);
}

/** The decoded parts of a message by their content type. */
export function parseParts(source: string): Record<string, string> {
  const boundary = /boundary="([^"]+)"/.exec(source)?.[1];
  const sections = boundary === undefined ? [source] : source.split(`--${boundary}`).slice(1, -1);
  return Object.fromEntries(
    sections.map((section) => {
      const body = section.slice(section.indexOf("\r\n\r\n") + 4);
      const type = /content-type: ([^;\r]+)/i.exec(section)?.[1] ?? "";
      if (/encoding: base64/i.test(section)) return [type, Buffer.from(body, "base64").toString()];
      if (!/encoding: quoted-printable/i.test(section)) return [type, body.trimEnd()];
      const bytes = body
        .replace(/=\r\n/g, "")
        .replace(/=([0-9A-F]{2})/g, (_, hex) => String.fromCharCode(Number(`0x${hex}`)));
      return [type, Buffer.from(bytes, "latin1").toString().trimEnd()];
    }),
  );
}

/** HTML as it was before the tracking pixel joined it at its end. */
export function withoutPixel(html = ""): string {
  return html.replace(/<img src="https:\/\/send\.test\/t\/o\/[\w-]+\.gif"[^>]*>$/, "");
}

import type { Target } from "./target.ts";

/** The newest message to the address in the sandbox, as a reader's program decodes it. */
export async function messageTo(
  target: Target,
  address: string,
): Promise<{ readonly subject: string; readonly from: string; readonly text: string }> {
  const { body } = await target.operator("GET", `/sandbox/messages?to=${encodeURIComponent(address)}`);
  const { subject, source, from } = body.messages[0];
  const text = String(source)
    .replaceAll("=\r\n", "")
    .replace(/=([0-9A-F]{2})/g, (_all, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
  return { subject, from, text };
}

import { PHONE_NUMBER_ID, signed, webhookBody } from "../support/whatsapp-webhook.ts";
import { formatPhone, isGoodPhone } from "./chat-provider.ts";
import type { LoadContext } from "./soak-world.ts";
import { triedUntilDone } from "./tried-until-done.ts";

/** The provider repeats a callback for days; a soak's longest outage takes a minute or two. */
const CALLBACK_TRIES = 40;
const REPEATED_MS = 4_000;

/** A chat message to a fresh number. */
export async function sendChat(context: LoadContext): Promise<void> {
  const { dice, book, api, tenants } = context;
  const tenant = tenants.sender(dice);
  const aim = isGoodPhone(book.messages.length) ? "sent" : "any";
  const message = book.ask(tenant.id, "whatsapp", aim);
  const body = { phone_number: formatPhone(message.seq), template_id: "order_update", params: ["Ann", message.seq] };
  const headers: Record<string, string> = dice.chance(0.2) ? { "idempotency-key": `chat-${message.seq}` } : {};
  const answer = await api.tenant(tenant.apiKey, "POST", "/v1/send/whatsapp", body, { headers });
  book.answered(message, answer.status, answer.body?.job_id);
}

/**
 * A person writes to the sending number. The provider repeats it until it is answered 200, and now and then once more.
 */
export async function write(context: LoadContext): Promise<void> {
  const { api, dice, book, keys, did } = context;
  const from = formatPhone(dice.between(0, book.messages.length));
  const id = `wamid.soak-${dice.between(0, 1_000_000_000)}-${from}`;
  const timestamp = String(Math.floor(Date.now() / 1_000));
  const message = { id, from, timestamp, type: "text", text: { body: `Is it ${id}?` } };
  const body = JSON.stringify(webhookBody({ messages: [message] }, PHONE_NUMBER_ID));
  await triedUntilDone(context, { most: CALLBACK_TRIES, pauseMs: () => REPEATED_MS }, async () => {
    // The former secrets stay valid; some processes do not know the newest before their restart.
    const { signature } = signed(body, keys.webhookSecrets.at(-1) ?? "");
    const headers = { "x-hub-signature-256": signature };
    const { status } = await api.call("POST", "/webhook/whatsapp", body, { headers });
    if (status === 200) book.written.add(id);
    did(`somebody wrote: ${status}`);
    return status === 200 && !dice.chance(0.2);
  });
}

import { isGoodPhone, phoneOf } from "./chat-provider.ts";
import type { LoadContext } from "./soak-world.ts";

/** A chat message to a number of its own. */
export async function sendChat(context: LoadContext): Promise<void> {
  const { dice, book, api, tenants } = context;
  const tenant = tenants.sender(dice);
  const aim = isGoodPhone(book.messages.length) ? "sent" : "any";
  const message = book.ask(tenant.id, "whatsapp", aim);
  const body = { phone_number: phoneOf(message.seq), template_id: "order_update", params: ["Ann", message.seq] };
  const headers: Record<string, string> = dice.chance(0.2) ? { "idempotency-key": `chat-${message.seq}` } : {};
  book.idempotencyKeys += Object.keys(headers).length;
  const answer = await api.tenant(tenant.apiKey, "POST", "/v1/send/whatsapp", body, { headers });
  book.answered(message, answer.status, answer.body?.job_id);
}

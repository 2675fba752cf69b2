import { connect } from "node:net";
import type { LoadContext } from "./soak-world.ts";

const TOO_LARGE = 10 * 1024 * 1024 + 1_024;
const SLOW_BYTES = 20;

/** One attempt of a hostile or clumsy caller. None of it may be accepted, and none may slow the others. */
export async function attack(context: LoadContext): Promise<void> {
  const { dice, api, tenants, book, did } = context;
  const { apiKey, id } = tenants.sender(dice);
  const kind = dice.between(0, 7);
  const expect = async (what: string, statuses: readonly number[], asked: Promise<{ readonly status: number }>) => {
    const { status } = await asked;
    did(`hostile: ${what} ${status}`);
    // A missing answer or a 5xx is a fault's effect; 429 a limit's.
    if (status !== 0 && status < 500 && status !== 429 && !statuses.includes(status)) {
      book.misdeed("what is wrong is refused", `${what} was answered ${status}`);
    }
  };
  const send = (body: unknown, key = apiKey) => api.tenant(key, "POST", "/v1/send/email", body);
  switch (kind) {
    case 0:
      return expect("invented key", [401], send({ to_address: "a@example.com" }, `wb_${dice.next()}`));
    case 1:
      return expect("broken JSON", [400], send(`{"to_address": "a@example.com", ${'"x":['.repeat(500)}`));
    case 2:
      return expect("bad members", [400, 403], send({ to_address: ["a"], template_id: 7, html: { a: 1 } }));
    case 3:
      return expect("too large a body", [413], send(new Uint8Array(TOO_LARGE).fill(0x61)));
    case 4:
      return slowBody(context, apiKey);
    case 5:
      return expect(
        "forged callback",
        [401, 403],
        api.call("POST", "/webhook/whatsapp", "{}", { headers: { "x-hub-signature-256": `sha256=${"0".repeat(64)}` } }),
      );
    case 6:
      return flood(context);
    default:
      return expect(
        "wrong operator",
        [401],
        api.call("GET", `/dash/api/tenants/${id}`, undefined, {
          headers: { authorization: "Bearer wrong-wrong-wrong-wrong" },
        }),
      );
  }
}

/** A tenant of ten requests a minute sends five minutes' worth at once. */
async function flood({ dice, api, tenants, book, did }: LoadContext): Promise<void> {
  const tenant = dice.pick(tenants.limited);
  await Promise.all(
    Array.from({ length: 25 }, async () => {
      const message = book.ask(tenant.id, "email");
      const body = {
        to_address: `f${message.seq}@example.com`,
        subject: "Flood",
        html: "<p>Flood of many mails.</p>",
        headers: { "X-Soak": String(message.seq) },
      };
      const answer = await api.tenant(tenant.apiKey, "POST", "/v1/send/email", body);
      book.answered(message, answer.status, answer.body?.job_id);
    }),
  );
  did("hostile: flood");
}

/** An endless body that comes byte by byte. */
async function slowBody({ service, did }: LoadContext, apiKey: string): Promise<void> {
  const socket = connect(Number(new URL(service.url).port), "127.0.0.1");
  socket.on("error", () => undefined);
  const closed = new Promise<void>((resolve) => socket.once("close", () => resolve()));
  socket.write(`POST /v1/send/email HTTP/1.1\r\nhost: soak\r\nx-api-key: ${apiKey}\r\ncontent-length: 100000\r\n\r\n{`);
  for (let sent = 0; sent < SLOW_BYTES && !socket.destroyed; sent += 1) {
    socket.write(" ");
    await Promise.race([Bun.sleep(1_000), closed]);
  }
  socket.destroy();
  did("hostile: slow body");
}

import type { Elysia } from "elysia";
import type { ReceivedMessage } from "../../domain/incoming-messages.ts";
import type { FrontDoor } from "../../http/front-door.ts";
import { operatorRoute, readPaging } from "../../http/operator-route.ts";

/** `GET /dash/api/whatsapp/messages`: what people wrote to the numbers that are sent from, newest first. */
export function incomingMessageRoutes(app: Elysia, door: FrontDoor): void {
  app.get("/dash/api/whatsapp/messages", ({ request }) =>
    operatorRoute(door, request, async (exchange) => {
      const { cursor, limit } = readPaging(request);
      const { items, nextCursor } = await door.ports.whatsapp.messages.page(cursor, limit);
      return exchange.json(200, { messages: items.map(shown), next_cursor: nextCursor });
    }),
  );
}

function shown({ id, phoneNumberId, from, name, type, content, receivedAtMs }: ReceivedMessage) {
  const received_at = new Date(receivedAtMs).toISOString();
  return { message_id: id, phone_number_id: phoneNumberId, from, name, type, received_at, content };
}

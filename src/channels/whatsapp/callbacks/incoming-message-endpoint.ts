import { type Static, Type } from "@sinclair/typebox";
import type { IncomingMessages, ReceivedMessage } from "../../../domain/channels/incoming-messages.ts";
import type { JsonObject } from "../../../domain/texts/json.ts";
import { type Endpoint, operatorEndpoint, reply } from "../../../http/endpoint.ts";
import { paging } from "../../../http/parameters.ts";
import { pageSchema, Timestamp } from "../../../http/schemas.ts";
import { invalidCursor } from "../../../http/store-results.ts";

const IncomingMessage = Type.Object(
  {
    message_id: Type.String({ description: "The provider's." }),
    phone_number_id: Type.Union([Type.String(), Type.Null()], { description: "The number that it came to." }),
    from: Type.Union([Type.String(), Type.Null()], {
      description: "The writer's number; null: hidden behind a username.",
    }),
    user_id: Type.Union([Type.String(), Type.Null()], { description: "The provider's id of the writer." }),
    username: Type.Union([Type.String(), Type.Null()]),
    name: Type.Union([Type.String(), Type.Null()], { description: "The writer's own name for itself." }),
    type: Type.String({
      description:
        "The provider's word: `text`, `image`, `button`, …; `account.updated` and `message.unknown` are parts of its calls that are no messages.",
    }),
    received_at: Timestamp,
    content: Type.Unsafe<JsonObject | null>({
      type: ["object", "null"],
      additionalProperties: true,
      description: "As the provider sent it; null where that was too long to be kept.",
    }),
  },
  { $id: "IncomingMessage" },
);

const EXAMPLE = {
  message_id: "wamid.HBgNNTQ5MTEyMjMzNDQ1NRUCABIYFDNBOTk",
  phone_number_id: "106540352242922",
  from: "5491122334455",
  user_id: "AR.13491208655302741918",
  username: "ada.l",
  name: "Ada",
  type: "text",
  received_at: "2026-11-21T07:30:00.000Z",
  content: { from: "5491122334455", id: "wamid.HBgN", timestamp: "1795247400", type: "text", text: { body: "Hi" } },
} as const;

/** `GET /dash/api/whatsapp/messages`: messages that people wrote to the sending numbers, newest first. */
export function incomingMessageEndpoint(messages: Pick<IncomingMessages, "page">): Endpoint {
  return operatorEndpoint({
    method: "GET",
    path: "/dash/api/whatsapp/messages",
    name: "operator",
    operation: "listIncomingMessages",
    tag: "Chat",
    summary:
      "List the messages that people wrote to the numbers of the platform's business accounts, newest first; the newest ones are kept",
    query: paging,
    answers: {
      200: {
        description: "Done.",
        schema: pageSchema("IncomingMessagePage", "messages", IncomingMessage),
        examples: [{ messages: [EXAMPLE], next_cursor: null }],
      },
    },
    async handle({ query: { cursor, limit } }) {
      const page = await messages.page(cursor, limit);
      if (page.kind === "invalid_cursor") throw invalidCursor("this cursor was not given out");
      const { items, nextCursor } = page.value;
      return reply(200, { messages: items.map(shown), next_cursor: nextCursor });
    },
  });
}

function shown(message: ReceivedMessage): Static<typeof IncomingMessage> {
  const { id, phoneNumberId, from, name, type, content, receivedAtMs } = message;
  return {
    message_id: id,
    phone_number_id: phoneNumberId,
    from,
    // Messages from before there were ids of people have none.
    user_id: message.userId ?? null,
    username: message.username ?? null,
    name,
    type,
    received_at: new Date(receivedAtMs).toISOString(),
    content,
  };
}

import type { Elysia } from "elysia";
import { ApiError } from "../../core/errors.ts";
import type { FrontDoor } from "../front-door.ts";
import { readQuery } from "../request-query.ts";
import { operatorRoute, parsePageLimit } from "./operator-route.ts";

/** `GET /dash/api/sandbox/messages`: what reached the stand-ins for the providers, newest first. */
export function sandboxRoutes(app: Elysia, door: FrontDoor): void {
  app.get("/dash/api/sandbox/messages", ({ request }) =>
    operatorRoute(door, request, (exchange) => {
      const { sandbox } = door.ports;
      if (sandbox === null) throw new ApiError(404, "there is no sandbox: real providers are in use");
      const { to, limit } = readQuery(request, ["to", "limit"]);
      return exchange.json(200, { messages: sandbox.messages(to ?? null, parsePageLimit(limit)) });
    }),
  );
}

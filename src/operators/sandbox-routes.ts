import type { Elysia } from "elysia";
import { ApiError } from "../domain/errors.ts";
import type { FrontDoor } from "../http/front-door.ts";
import { operatorRoute, parsePageLimit } from "../http/operator-route.ts";
import { readQuery } from "../http/request-query.ts";

/** What reached the stand-ins for the providers, and what devices said of us, newest first. */
export function sandboxRoutes(app: Elysia, door: FrontDoor): void {
  app.get("/dash/api/sandbox/messages", ({ request }) =>
    operatorRoute(door, request, async (exchange) => {
      const { sandbox } = door.ports;
      if (sandbox === null) throw new ApiError(404, "there is no sandbox: real providers are in use");
      const { to, limit } = readQuery(request, ["to", "limit"]);
      return exchange.json(200, { messages: await sandbox.messages(to ?? null, parsePageLimit(limit)) });
    }),
  );
  app.get("/dash/api/sandbox/device-log", ({ request }) =>
    operatorRoute(door, request, async (exchange) => {
      const { sandbox, passKit } = door.ports;
      if (sandbox === null) throw new ApiError(404, "there is no sandbox: real providers are in use");
      const { limit } = readQuery(request, ["limit"]);
      return exchange.json(200, { complaints: await passKit.log.latest(parsePageLimit(limit)) });
    }),
  );
}

import type { Elysia } from "elysia";
import { ApiError } from "../../../domain/errors.ts";
import type { FrontDoor } from "../../../http/front-door.ts";
import { operatorRoute } from "../../../http/operator-route.ts";

/** `POST /dash/api/mail-reports`: mail that came back, one message as it is. 202 once its reports are recorded. */
export function mailReportRoutes(app: Elysia, door: FrontDoor): void {
  app.post("/dash/api/mail-reports", ({ request }) =>
    operatorRoute(door, request, async (exchange) => {
      if (!/^message\/rfc822\s*(?:;|$)/i.test(request.headers.get("content-type") ?? "")) {
        throw new ApiError(400, "the Content-Type must be message/rfc822");
      }
      return exchange.json(202, { reports: await door.ports.mailReports.take(await door.bytes(exchange)) });
    }),
  );
}

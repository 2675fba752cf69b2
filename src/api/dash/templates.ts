import type { Elysia } from "elysia";
import { TEMPLATE_SLUG } from "../../core/email.ts";
import { ApiError } from "../../core/errors.ts";
import type { FrontDoor } from "../front-door.ts";
import { emailTemplateBody } from "./body-schemas.ts";
import { OperatorBody } from "./operator-body.ts";
import { noContent, operatorRoute, tenantIdOf } from "./operator-route.ts";

/** `/dash/api/tenants/{id}/templates`: what `template_id` names. */
export function templateRoutes(app: Elysia, door: FrontDoor): void {
  const { registry } = door.ports;
  const body = new OperatorBody(emailTemplateBody);
  app.get("/dash/api/tenants/:id/templates", ({ request, params }) =>
    operatorRoute(door, request, async (exchange) =>
      exchange.json(200, { templates: await registry.templates(tenantIdOf(params.id)) }),
    ),
  );
  app.put("/dash/api/tenants/:id/templates/:slug", ({ request, params: { id, slug } }) =>
    operatorRoute(door, request, async (exchange) => {
      const tenantId = tenantIdOf(id);
      if (!isSlug(slug))
        throw new ApiError(400, "a template's slug is 1 to 100 of A-Z, a-z, 0-9, dot, hyphen, underscore");
      const { channel, subject, html, text } = await body.read(request);
      return exchange.json(
        200,
        await registry.putEmailTemplate(tenantId, { slug, channel, subject, html, text: text ?? null }),
      );
    }),
  );
  app.get("/dash/api/tenants/:id/templates/:slug", ({ request, params: { id, slug } }) =>
    operatorRoute(door, request, async (exchange) =>
      exchange.json(200, await registry.template(tenantIdOf(id), slugOf(slug))),
    ),
  );
  app.delete("/dash/api/tenants/:id/templates/:slug", ({ request, params: { id, slug } }) =>
    operatorRoute(door, request, async (exchange) => {
      await registry.deleteTemplate(tenantIdOf(id), slugOf(slug));
      return noContent(exchange);
    }),
  );
}

/** The router gives null for what is no valid percent-encoding. */
function isSlug(text: string | null): text is string {
  return text !== null && TEMPLATE_SLUG.test(text);
}

/** Throws 404 for what cannot be a slug. */
function slugOf(text: string | null): string {
  if (!isSlug(text)) throw new ApiError(404, "there is no such template");
  return text;
}

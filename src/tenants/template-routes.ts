import type { Elysia } from "elysia";
import { walletTemplateBody } from "../channels/wallet/operator-bodies.ts";
import { checkTemplate } from "../channels/wallet/request/accept-pass.ts";
import { TEMPLATE_SLUG } from "../domain/email.ts";
import { ApiError } from "../domain/errors.ts";
import { isJsonObject } from "../domain/json.ts";
import { limits } from "../domain/limits.ts";
import type { TemplateRecord } from "../domain/registry.ts";
import type { WalletTemplate } from "../domain/wallet.ts";
import type { FrontDoor } from "../http/front-door.ts";
import { OperatorBody } from "../http/operator-body.ts";
import { noContent, operatorRoute, tenantIdOf } from "../http/operator-route.ts";
import { emailTemplateBody } from "./body-schemas.ts";

/** `/dash/api/tenants/{id}/templates`: what `template_id` names. */
export function templateRoutes(app: Elysia, door: FrontDoor): void {
  const { registry } = door.ports;
  const emailBody = new OperatorBody(emailTemplateBody);
  const walletBody = new OperatorBody(walletTemplateBody);
  const put = (tenantId: string, slug: string, value: unknown): Promise<TemplateRecord> => {
    if (isJsonObject(value) && value["channel"] === "wallet") {
      const { channel, pass_type, style = null, pass_data } = walletBody.check(value);
      requireSound({ passType: pass_type, style, passData: pass_data });
      return registry.putWalletTemplate(tenantId, { slug, channel, pass_type, style, pass_data });
    }
    const { channel, subject, html, text } = emailBody.check(value);
    return registry.putEmailTemplate(tenantId, { slug, channel, subject, html, text: text ?? null });
  };
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
      return exchange.json(200, await put(tenantId, slug, (await door.json(exchange)).value));
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

/** Throws an `ApiError` 400 that names the field of a pass that is wrong. */
function requireSound(template: WalletTemplate): void {
  if (JSON.stringify(template.passData).length > limits.passTemplateCharsMax) {
    throw new ApiError(400, `pass_data must not be larger than ${limits.passTemplateCharsMax} characters`);
  }
  checkTemplate(template);
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

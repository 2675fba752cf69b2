import type { Elysia } from "elysia";
import { ApiError } from "../../domain/errors.ts";
import { type HeaderMedia, TEMPLATE_ALIAS } from "../../domain/whatsapp.ts";
import type { FrontDoor } from "../../http/front-door.ts";
import { OperatorBody } from "../../http/operator-body.ts";
import { noContent, operatorRoute, tenantIdOf } from "../../http/operator-route.ts";
import { aliasBody } from "./alias-body.ts";

/** `/dash/api/tenants/{id}/aliases`: a tenant's own names for the chat provider's templates. */
export function aliasRoutes(app: Elysia, door: FrontDoor): void {
  const { registry } = door.ports;
  const body = new OperatorBody(aliasBody);
  app.get("/dash/api/tenants/:id/aliases", ({ request, params }) =>
    operatorRoute(door, request, async (exchange) =>
      exchange.json(200, { aliases: await registry.aliases(tenantIdOf(params.id)) }),
    ),
  );
  app.put("/dash/api/tenants/:id/aliases/:alias", ({ request, params }) =>
    operatorRoute(door, request, async (exchange) => {
      const tenantId = tenantIdOf(params.id);
      const { alias } = params;
      if (!isAlias(alias)) {
        throw new ApiError(400, "an alias is 1 to 100 of A-Z, a-z, 0-9, dot, hyphen, underscore, no sign first");
      }
      const {
        meta_name,
        language_code = null,
        params: positions = [],
        header = null,
      } = await body.read(door, exchange);
      const media = header === null ? null : checkedHeader(header);
      const record = { alias, meta_name, language_code, params: positions, header: media };
      return exchange.json(200, await registry.putAlias(tenantId, record));
    }),
  );
  app.get("/dash/api/tenants/:id/aliases/:alias", ({ request, params: { id, alias } }) =>
    operatorRoute(door, request, async (exchange) =>
      exchange.json(200, await registry.alias(tenantIdOf(id), aliasOf(alias))),
    ),
  );
  app.delete("/dash/api/tenants/:id/aliases/:alias", ({ request, params: { id, alias } }) =>
    operatorRoute(door, request, async (exchange) => {
      await registry.deleteAlias(tenantIdOf(id), aliasOf(alias));
      return noContent(exchange);
    }),
  );
}

/** Throws 400 for a header that the provider would not take. */
function checkedHeader(header: HeaderMedia): HeaderMedia {
  const { type, link, id, filename } = header;
  if ((link === undefined) === (id === undefined)) throw new ApiError(400, "header must have either a link or an id");
  if (link !== undefined && !URL.canParse(link)) throw new ApiError(400, "header[link] must be an https address");
  if (filename !== undefined && type !== "document") {
    throw new ApiError(400, "header[filename] is for documents only");
  }
  return header;
}

/** The router gives null for what is no valid percent-encoding. */
function isAlias(text: string | null): text is string {
  return text !== null && TEMPLATE_ALIAS.test(text);
}

/** Throws 404 for what cannot be an alias. */
function aliasOf(text: string | null): string {
  if (!isAlias(text)) throw new ApiError(404, "the tenant has no such alias");
  return text;
}

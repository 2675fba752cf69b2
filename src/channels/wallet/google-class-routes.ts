import type { Elysia } from "elysia";
import { ApiError } from "../../domain/errors.ts";
import { googleIssuerOf } from "../../domain/platform.ts";
import type { Tenant } from "../../domain/tenant.ts";
import type { Exchange } from "../../http/exchange.ts";
import type { FrontDoor } from "../../http/front-door.ts";
import { readQuery } from "../../http/request-query.ts";
import { admittedTenant } from "../../http/sending/serve-send.ts";
import {
  acceptGoogleClass,
  acceptGoogleClassChange,
  isGoogleClassId,
  readClassType,
} from "./request/accept-google-class.ts";
import { missingCredentials } from "./routes.ts";

/** `/v1/google/classes`: what passes of Google's wallet have in common. Google is asked while the caller waits. */
export function googleClassRoutes(app: Elysia, door: FrontDoor): void {
  app.post("/v1/google/classes", ({ request }) =>
    door.serve("create_google_class", request, (exchange) => create(door, exchange)),
  );
  app.put("/v1/google/classes/:id", ({ request, params: { id } }) =>
    door.serve("change_google_class", request, (exchange) => change(door, exchange, id)),
  );
  app.get("/v1/google/classes/:id", ({ request, params: { id } }) =>
    door.serve("google_class", request, (exchange) => read(door, exchange, id)),
  );
}

async function create(door: FrontDoor, exchange: Exchange): Promise<Response> {
  const tenant = await admittedTenant(door, exchange, "wallet");
  const googleClass = acceptGoogleClass((await door.json(exchange)).value);
  const { classId } = googleClass;
  const issuer = issuerPrefixOf(door, tenant);
  if (!classId.startsWith(issuer)) throw new ApiError(400, `class_data.id must begin with ${issuer}`);
  await door.ports.wallet.classes.create(tenant, googleClass);
  return exchange.json(201, { status: "created", class_id: classId });
}

async function change(door: FrontDoor, exchange: Exchange, id: string | null): Promise<Response> {
  const tenant = await admittedTenant(door, exchange, "wallet");
  const googleClass = acceptGoogleClassChange((await door.json(exchange)).value, id ?? "");
  await door.ports.wallet.classes.change(tenant, { ...googleClass, classId: classOf(door, tenant, id) });
  return exchange.json(200, { status: "updated", class_id: googleClass.classId });
}

async function read(door: FrontDoor, exchange: Exchange, id: string | null): Promise<Response> {
  const tenant = await admittedTenant(door, exchange, "wallet", ["class_type"]);
  const kind = readClassType(readQuery(exchange.request, ["class_type"]).class_type);
  const classId = classOf(door, tenant, id);
  return exchange.json(200, await door.ports.wallet.classes.read(tenant, kind, classId));
}

/** Throws 404 for what cannot be a class of the tenant's issuer. */
function classOf(door: FrontDoor, tenant: Tenant, id: string | null): string {
  const issuer = issuerPrefixOf(door, tenant);
  if (id === null || !isGoogleClassId(id) || !id.startsWith(issuer)) throw new ApiError(404, "there is no such class");
  return id;
}

/** How the ids of the classes begin that the tenant can have. Throws 500 where there are no credentials. */
function issuerPrefixOf({ ports: { platform } }: FrontDoor, tenant: Tenant): string {
  const issuer = googleIssuerOf(tenant, platform);
  if (issuer === null) throw missingCredentials("google");
  return `${issuer.issuerId}.`;
}

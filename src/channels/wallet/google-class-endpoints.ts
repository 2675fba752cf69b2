import { Type } from "@sinclair/typebox";
import { GOOGLE_KINDS } from "../../domain/channels/wallet.ts";
import type { Tenant } from "../../domain/tenants/tenant.ts";
import type { JsonObject } from "../../domain/texts/json.ts";
import { ApiError } from "../../http/api-error.ts";
import { type Endpoint, reply, tenantEndpoint } from "../../http/endpoint.ts";
import { CONFLICT, tenantFailure } from "../../http/failures.ts";
import { pathText } from "../../http/parameters.ts";
import { enumSchema } from "../../http/schemas.ts";
import type { GoogleClassAnswer, GoogleClasses } from "./google-classes.ts";
import { walletLimits } from "./limits.ts";
import { resolveGoogleIssuer, type WalletPlatform } from "./platform.ts";
import { missingCredentials, orRefuse, unusable } from "./refusals.ts";
import {
  acceptGoogleClass,
  acceptGoogleClassChange,
  isGoogleClassId,
  readClassType,
} from "./request/accept-google-class.ts";
import { GoogleClass, GoogleClassUpdate, NewGoogleClass } from "./request/google-class-schema.ts";

export interface GoogleClassEndpointPorts {
  readonly wallet: { readonly classes: Pick<GoogleClasses, "create" | "change" | "read"> };
  /** Provider credentials for tenants without their own. */
  readonly platform: WalletPlatform;
}

const GoogleClassChange = Type.Object(
  { status: enumSchema(["created", "updated"]), class_id: Type.String() },
  { $id: "GoogleClassChange" },
);

const CLASS_ID = "3388000000012345678.final";
const FINAL = {
  id: CLASS_ID,
  issuerName: "Acme",
  reviewStatus: "UNDER_REVIEW",
  eventName: localized("The final"),
  venue: { name: localized("Centre court"), address: localized("1 Racket Road") },
  dateTime: { start: "2026-12-05T18:30:00", end: "2026-12-05T21:30:00" },
  hexBackgroundColor: "#1A56DB",
};
const IDS =
  "Ids begin with the issuer id and a dot. With the platform's issuer, which tenants share, a class belongs to the tenant " +
  "that creates it or is the first to use it: no other can create, change or read it, or have passes of it.";

/** Members shared by the endpoints of one class. */
const OF_CLASS = {
  path: "/v1/google/classes/:id",
  tag: "Passes",
  channel: "wallet",
  params: { id: pathText("The class's id.", CLASS_ID) },
  fails: {
    404: tenantFailure(
      "NoSuchClass",
      "Google has no such class, or it is not one of the tenant's.",
      "there is no such class",
    ),
  },
} as const;

/** `/v1/google/classes`: the parts that Google passes share. Google is called while the caller waits. */
export function googleClassEndpoints(ports: GoogleClassEndpointPorts): readonly Endpoint[] {
  return [createEndpoint(ports), changeEndpoint(ports), readEndpoint(ports)];
}

function createEndpoint(ports: GoogleClassEndpointPorts): Endpoint {
  return tenantEndpoint({
    method: "POST",
    path: "/v1/google/classes",
    name: "create_google_class",
    operation: "createGoogleClass",
    tag: "Passes",
    summary: "Create a class of Google passes",
    description: `One a kind of pass or event: its passes show what it says. ${IDS}`,
    channel: "wallet",
    scope: "send",
    // It stores the class's owner permanently, even if Google refuses the class.
    isPaced: true,
    body: { schema: NewGoogleClass, examples: [{ class_type: "eventTicket", class_data: FINAL }] },
    answers: {
      201: {
        description: "Google has it. 400 with Google's words where it does not take it.",
        schema: GoogleClassChange,
        examples: [{ status: "created", class_id: CLASS_ID }],
      },
    },
    fails: { 409: CONFLICT },
    async handle({ tenant, body }) {
      const googleClass = orRefuse(acceptGoogleClass(body));
      const { classId } = googleClass;
      const issuer = requireIssuerPrefix(ports, tenant);
      if (!classId.startsWith(issuer)) throw new ApiError(400, `class_data.id must begin with ${issuer}`);
      requireDone(await ports.wallet.classes.create(tenant, googleClass), classId);
      return reply(201, { status: "created", class_id: classId });
    },
  });
}

function changeEndpoint(ports: GoogleClassEndpointPorts): Endpoint {
  return tenantEndpoint({
    ...OF_CLASS,
    method: "PUT",
    scope: "send",
    name: "change_google_class",
    operation: "changeGoogleClass",
    summary: "Change a class, and with it all its passes",
    description:
      "Members that are given replace what the class says, null removes one; `venue`, `dateTime`, `origin`, `destination` and " +
      "`flightHeader` are changed member by member. The class is submitted for review with " +
      "every change (`reviewStatus` UNDER_REVIEW), but for a draft that is to stay one (DRAFT).",
    body: {
      schema: GoogleClassUpdate,
      examples: [
        {
          class_type: "eventTicket",
          class_data: { dateTime: { start: "2026-12-06T18:30:00", end: "2026-12-06T21:30:00" } },
        },
      ],
    },
    answers: {
      200: {
        description: "Google has changed it.",
        schema: GoogleClassChange,
        examples: [{ status: "updated", class_id: CLASS_ID }],
      },
    },
    fails: { ...OF_CLASS.fails, 409: CONFLICT },
    async handle({ tenant, params: { id }, body }) {
      const googleClass = orRefuse(acceptGoogleClassChange(body, id));
      const classId = requireClassId(ports, tenant, id);
      requireDone(await ports.wallet.classes.change(tenant, { ...googleClass, classId }), classId);
      return reply(200, { status: "updated", class_id: classId });
    },
  });
}

function readEndpoint(ports: GoogleClassEndpointPorts): Endpoint {
  return tenantEndpoint({
    ...OF_CLASS,
    method: "GET",
    name: "google_class",
    operation: "getGoogleClass",
    summary: "A class as Google holds it",
    query: {
      class_type: {
        description: "Its kind.",
        schema: enumSchema(GOOGLE_KINDS),
        isRequired: true,
        read: (text) => orRefuse(readClassType(text)),
      },
    },
    answers: { 200: { description: "The class.", schema: GoogleClass, examples: [FINAL] } },
    async handle({ tenant, params: { id }, query: { class_type } }) {
      const classId = requireClassId(ports, tenant, id);
      return reply(200, requireDone(await ports.wallet.classes.read(tenant, class_type, classId), classId));
    },
  });
}

/** Returns the class as stored by Google. Throws an `ApiError` with the reason why the call failed. */
function requireDone(answer: GoogleClassAnswer, classId: string): JsonObject {
  switch (answer.kind) {
    case "done":
      return answer.data;
    case "exists":
      throw new ApiError(400, `there is a class ${classId} already`);
    case "full":
      throw new ApiError(
        "limit_reached",
        `there can be at most ${walletLimits.googleClassesMax} classes of a tenant on the shared issuer`,
      );
    case "missing":
      throw new ApiError("no_such_class", `there is no class ${classId}`);
    case "refused":
      throw new ApiError(400, `Google's wallet refused the class${answer.said === "" ? "" : `: ${answer.said}`}`);
    case "unusable":
      throw unusable(answer);
  }
}

/** Throws 404 if the id cannot be a class of the tenant's issuer. */
function requireClassId(ports: GoogleClassEndpointPorts, tenant: Tenant, id: string): string {
  const issuer = requireIssuerPrefix(ports, tenant);
  if (!isGoogleClassId(id) || !id.startsWith(issuer)) throw new ApiError("no_such_class", "there is no such class");
  return id;
}

/** Returns the id prefix of the tenant's classes. Throws 500 if there are no credentials. */
function requireIssuerPrefix({ platform }: GoogleClassEndpointPorts, tenant: Tenant): string {
  const issuer = resolveGoogleIssuer(tenant, platform);
  if (issuer === null) throw missingCredentials("google");
  return `${issuer.issuerId}.`;
}

function localized(value: string) {
  return { defaultValue: { language: "en", value } };
}

import type { JsonObject } from "../../domain/json.ts";
import { GOOGLE_KINDS } from "../../domain/wallet.ts";
import { errors, pathParameter, queryParameter, tenantAnswer } from "../../http/openapi/answers.ts";
import { requestId } from "../../http/openapi/send-operation.ts";

const CLASS_ID = "3388000000012345678.final";
const classId = pathParameter("id", "The class's id.", CLASS_ID);
const ERRORS = {
  "400": "BadRequest",
  "401": "UnknownKey",
  "403": "Forbidden",
  "429": "TooManyRequests",
  "500": "InternalError",
} as const;
const tenantCall = { tags: ["Passes"], security: [{ apiKey: [] }] };
const localized = (value: string): JsonObject => ({ defaultValue: { language: "en", value } });
const FINAL: JsonObject = {
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

/** What passes of Google's wallet have in common. Google is asked while the caller waits. */
export const googleClassPaths: JsonObject = {
  "/v1/google/classes": {
    post: {
      ...tenantCall,
      operationId: "createGoogleClass",
      summary: "Create a class of Google passes",
      description: `One a kind of pass or event: its passes show what it says. ${IDS}`,
      parameters: [requestId],
      requestBody: bodyOf("NewGoogleClass", { class_type: "eventTicket", class_data: FINAL }),
      responses: {
        "201": tenantAnswer({
          description: "Google has it. 400 with Google's words where it does not take it.",
          schema: "GoogleClassChange",
          example: { status: "created", class_id: CLASS_ID },
        }),
        ...errors({ ...ERRORS, "413": "TooLarge" }),
      },
    },
  },
  "/v1/google/classes/{id}": {
    put: {
      ...tenantCall,
      operationId: "changeGoogleClass",
      summary: "Change a class, and with it all its passes",
      description:
        "Members that are given replace what the class says, null removes one. The class is submitted for review with " +
        "every change (`reviewStatus` UNDER_REVIEW), but for a draft that is to stay one (DRAFT).",
      parameters: [classId, requestId],
      requestBody: bodyOf("GoogleClassUpdate", {
        class_type: "eventTicket",
        class_data: { dateTime: { start: "2026-12-06T18:30:00", end: "2026-12-06T21:30:00" } },
      }),
      responses: {
        "200": tenantAnswer({
          description: "Google has changed it.",
          schema: "GoogleClassChange",
          example: { status: "updated", class_id: CLASS_ID },
        }),
        ...errors({ ...ERRORS, "404": "NoSuchClass", "413": "TooLarge" }),
      },
    },
    get: {
      ...tenantCall,
      operationId: "getGoogleClass",
      summary: "A class as Google holds it",
      parameters: [
        classId,
        { ...queryParameter("class_type", "Its kind.", { type: "string", enum: GOOGLE_KINDS }), required: true },
        requestId,
      ],
      responses: {
        "200": tenantAnswer({ description: "The class.", schema: "GoogleClass", example: FINAL }),
        ...errors({ ...ERRORS, "404": "NoSuchClass" }),
      },
    },
  },
};

const data = (description: string): JsonObject => ({ type: "object", additionalProperties: true, description });
const body = (classData: JsonObject): JsonObject => ({
  type: "object",
  required: ["class_type", "class_data"],
  properties: { class_type: { type: "string", enum: GOOGLE_KINDS }, class_data: classData },
});

export const googleClassSchemas: JsonObject = {
  GoogleClass: data("An `EventTicketClass` or a `GenericClass` of Google's REST API."),
  NewGoogleClass: body({
    ...data(
      "An `EventTicketClass` or a `GenericClass` of Google's REST API. Event tickets: `issuerName` and `eventName` are " +
        "required, `reviewStatus` is UNDER_REVIEW unless it is DRAFT.",
    ),
    required: ["id"],
    properties: { id: { type: "string" } },
  }),
  GoogleClassUpdate: body(data("What changes.")),
  GoogleClassChange: {
    type: "object",
    required: ["status", "class_id"],
    properties: { status: { type: "string", enum: ["created", "updated"] }, class_id: { type: "string" } },
  },
};

function bodyOf(schema: string, example: JsonObject): JsonObject {
  return {
    required: true,
    content: { "application/json": { schema: { $ref: `#/components/schemas/${schema}` }, example } },
  };
}

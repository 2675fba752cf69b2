import type { JsonObject } from "../../../domain/json.ts";
import { limits } from "../../../domain/limits.ts";
import { emptyAnswer, errors, pathParameter, queryParameter, textAnswer } from "../../../http/openapi/answers.ts";
import { operation } from "../../../http/openapi/operator-operation.ts";

const device = pathParameter("device", "The device library identifier.", "3f2a9c0d5e6b7a8190817263544536271");
const passType = pathParameter("passType", "The pass type identifier.", "pass.com.example.event");
const serial = pathParameter("serial", "The pass's serial number.", "EVT-0001");
const TOKEN = [{ applePass: [] }];
const REFUSED = { "401": "UnknownPass", "500": "PublicInternalError" } as const;

interface DeviceCall {
  readonly id: string;
  readonly summary: string;
  readonly description?: string;
  readonly security?: readonly JsonObject[];
  readonly parameters: readonly JsonObject[];
  readonly body?: JsonObject;
  readonly responses: JsonObject;
}

function call({ id, summary, description, security = [], parameters, body, responses }: DeviceCall): JsonObject {
  return {
    operationId: id,
    tags: ["Pass devices"],
    summary,
    ...(description === undefined ? null : { description }),
    security,
    parameters,
    ...(body === undefined
      ? null
      : { requestBody: { required: true, content: { "application/json": { schema: body } } } }),
    responses,
  };
}

const UPDATES: JsonObject = {
  type: "object",
  properties: { serialNumbers: { type: "array", items: { type: "string" } }, lastUpdated: { type: "string" } },
  required: ["serialNumbers", "lastUpdated"],
};

/** What Apple's devices ask, and what the sandbox shows of it. */
export const passKitPaths: JsonObject = {
  "/wallet/v1/devices/{device}/registrations/{passType}/{serial}": {
    post: call({
      id: "registerDevice",
      summary: "A device has the pass, and says where it can be pushed to",
      description: "A new push token holds for all passes of the type on the device.",
      security: TOKEN,
      parameters: [device, passType, serial],
      body: { type: "object", properties: { pushToken: { type: "string", maxLength: 512 } }, required: ["pushToken"] },
      responses: {
        "200": emptyAnswer("It had the pass already."),
        "201": emptyAnswer("It is registered, and the tenant's webhook is told."),
        ...errors({ "400": "DeviceBadRequest", "403": "TooManyDevices", "413": "DeviceTooLarge", ...REFUSED }),
      },
    }),
    delete: call({
      id: "unregisterDevice",
      summary: "A device has the pass no longer",
      security: TOKEN,
      parameters: [device, passType, serial],
      responses: { "200": emptyAnswer("It is not registered."), ...errors(REFUSED) },
    }),
  },
  "/wallet/v1/devices/{device}/registrations/{passType}": {
    get: call({
      id: "listUpdatedPasses",
      summary: "Serials of the device's passes that changed since a tag",
      parameters: [
        device,
        passType,
        queryParameter("passesUpdatedSince", "The `lastUpdated` of an earlier answer; absent: all of them.", {
          type: "string",
        }),
      ],
      responses: {
        "200": {
          ...emptyAnswer("What changed, and the tag to ask with next time."),
          content: { "application/json": { schema: UPDATES } },
        },
        "204": emptyAnswer("Nothing changed, or the device is not known."),
        ...errors({ "500": "PublicInternalError" }),
      },
    }),
  },
  "/wallet/v1/passes/{passType}/{serial}": {
    get: call({
      id: "getLatestPass",
      summary: "The latest signed pass",
      security: TOKEN,
      parameters: [
        passType,
        serial,
        { name: "If-Modified-Since", in: "header", required: false, schema: { type: "string" } },
      ],
      responses: {
        "200": textAnswer("The pass, with `Last-Modified`.", "application/vnd.apple.pkpass"),
        "304": emptyAnswer("It has not changed since."),
        ...errors({ ...REFUSED, "404": "PassNotSigned" }),
      },
    }),
  },
  "/wallet/v1/log": {
    post: call({
      id: "logDeviceComplaint",
      summary: "What a device complains of",
      parameters: [],
      body: {
        type: "object",
        properties: { logs: { type: "array", items: { type: "string" } } },
        required: ["logs"],
      },
      responses: {
        "200": emptyAnswer(
          `Taken; what is more than ${limits.deviceLogLinesMax} lines a call, or ${limits.deviceLogLinesPerMinute} a ` +
            "minute from all devices together, is dropped.",
        ),
        ...errors({ "400": "DeviceBadRequest", "413": "DeviceTooLarge", "500": "PublicInternalError" }),
      },
    }),
  },
  "/dash/api/sandbox/device-log": {
    get: operation({
      id: "listDeviceComplaints",
      tag: "Sandbox",
      summary: "What devices complained of to this process, newest first",
      parameters: [queryParameter("limit", "Above 500 counts as 500.", { type: "integer", minimum: 1, default: 100 })],
      status: "200",
      answers: { schema: "DeviceComplaints" },
      alsoFails: { "400": "OperatorBadRequest", "404": "OperatorNotFound" },
    }),
  },
};

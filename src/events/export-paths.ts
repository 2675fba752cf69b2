import { EXPORT_FORMATS } from "../domain/event-export.ts";
import type { JsonObject } from "../domain/json.ts";
import { limits } from "../domain/limits.ts";
import { errors, queryParameter } from "../http/openapi/answers.ts";

const day = (name: string, description: string) => ({
  ...queryParameter(name, description, { type: "string", format: "date", examples: ["2026-11-01"] }),
  required: true,
});
const binary: JsonObject = { schema: { type: "string", format: "binary" } };

/** Events in bulk, for analysts. */
export const exportPaths: JsonObject = {
  "/dash/api/export": {
    get: {
      operationId: "exportEvents",
      tags: ["Analysis"],
      summary: "Download the events of some days",
      description:
        "All channels, ordered by `tenant_id` and `event_id`: `tenant_id`, `event_id`, `created_at` (UTC, with " +
        "milliseconds), `job_id`, `channel`, `event_type`, `result` (an object in ndjson, its JSON text in CSV and " +
        "Parquet). Events that were there when it began are in it once. An answer that breaks off is no whole file: the " +
        "connection is closed before its end, and clients report that. One export at a time runs in a process.",
      security: [{ operator: [] }],
      parameters: [
        day("from", "First UTC day."),
        day("to", `Last UTC day. At most ${limits.exportDaysMax} days in all.`),
        queryParameter("tenant", "A tenant's id; all tenants without it.", { type: "string" }),
        queryParameter("format", "What the file is.", {
          type: "string",
          enum: [...EXPORT_FORMATS],
          default: "ndjson",
        }),
      ],
      responses: {
        "200": {
          description: "The file.",
          headers: {
            "X-Request-Id": { $ref: "#/components/headers/RequestId" },
            "Content-Disposition": { description: "A name for the file.", schema: { type: "string" } },
          },
          content: { "application/x-ndjson": binary, "text/csv": binary, "application/vnd.apache.parquet": binary },
        },
        ...errors({
          "400": "OperatorBadRequest",
          "401": "OperatorUnknown",
          "429": "ExportUnderWay",
          "500": "OperatorInternalError",
        }),
      },
    },
  },
};

import type { JsonObject } from "../../domain/json.ts";
import { answer, errors, textAnswer } from "./answers.ts";

const security: readonly JsonObject[] = [];

function page(operationId: string, summary: string, mediaType: string): JsonObject {
  return {
    get: { operationId, tags: ["Service"], summary, security, responses: { "200": textAnswer(summary, mediaType) } },
  };
}

/** What needs no authentication, but for metrics that have a token. */
export const servicePaths: JsonObject = {
  "/health": {
    get: {
      operationId: "health",
      tags: ["Service"],
      summary: "Whether the process lives",
      security,
      responses: { "200": answer({ description: "It does.", schema: "Health", example: { status: "ok" } }) },
    },
  },
  "/ready": {
    get: {
      operationId: "ready",
      tags: ["Service"],
      summary: "Whether every dependency is up",
      security,
      responses: {
        "200": answer({
          description: "All are that it cannot do without. What else is away is listed.",
          schema: "Ready",
          example: {
            status: "ready",
            away: [{ part: "relay smtp.example.com:25", since: "2026-01-01T00:00:00.000Z" }],
          },
        }),
        "503": answer({
          description: "At least one is down, or the process is stopping.",
          schema: "NotReady",
          example: {
            error: "not ready: clickhouse",
            status: "unavailable",
            failing: ["clickhouse"],
            away: [{ part: "clickhouse", since: "2026-01-01T00:00:00.000Z" }],
          },
        }),
      },
    },
  },
  "/metrics": {
    get: {
      operationId: "metrics",
      tags: ["Service"],
      summary: "Metrics in the Prometheus text format",
      // For programs of this machine without one, unless the server was given one.
      security: [{}, { metrics: [] }],
      responses: {
        "200": textAnswer("Metrics in the Prometheus text format", "text/plain"),
        ...errors({
          "401": "MetricsUnknown",
          "403": "MetricsForbidden",
          "404": "MetricsElsewhere",
          "500": "OperatorInternalError",
        }),
      },
    },
  },
  "/dash": page("dashboard", "The operators' page", "text/html"),
  "/dash/dashboard.js": page("dashboardScript", "Part of the operators' page", "text/javascript"),
  "/dash/dashboard.css": page("dashboardStyle", "Part of the operators' page", "text/css"),
};

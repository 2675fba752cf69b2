import packageJson from "../package.json" with { type: "json" };
import type { ApiPorts } from "../src/app/api-ports.ts";
import { CHANNELS } from "../src/app/channels.ts";
import { createApi } from "../src/app/endpoints.ts";
import { JobIds } from "../src/domain/ids.ts";
import { systemClock } from "../src/runtime/system-clock.ts";
import { systemRandom } from "../src/runtime/system-random.ts";

export interface Schema {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly anyOf?: readonly Schema[];
  readonly oneOf?: readonly Schema[];
  readonly allOf?: readonly Schema[];
  readonly not?: { readonly required: readonly string[] };
  readonly properties?: Members;
  readonly patternProperties?: Members;
  readonly additionalProperties?: boolean;
  readonly required?: readonly string[];
  readonly items?: Schema;
  readonly description?: string;
}

export type Members = Readonly<Record<string, Schema>>;

export type Content = Readonly<Record<string, { readonly schema: Schema } & Examples>>;

/** One example, or several by name. */
interface Examples {
  readonly example?: unknown;
  readonly examples?: Readonly<Record<string, { readonly value: unknown }>>;
}

export interface Parameter {
  readonly name: string;
  readonly in: "path" | "query" | "header";
  readonly required: boolean;
  readonly description: string;
  readonly schema: Schema;
}

export interface Operation {
  readonly deprecated?: boolean;
  readonly externalDocs?: { readonly url: string };
  readonly operationId: string;
  readonly tags: readonly string[];
  readonly security: readonly Readonly<Record<string, unknown>>[];
  readonly summary: string;
  readonly description?: string;
  readonly parameters: readonly Parameter[];
  readonly requestBody?: { readonly required: boolean; readonly content: Content };
  readonly responses: Readonly<Record<string, Response>>;
}

interface Response {
  readonly $ref?: string;
  readonly description?: string;
  readonly content?: Content;
}

export interface ApiDocument {
  readonly tags: readonly { readonly name: string; readonly description: string }[];
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: {
    readonly schemas: Members;
    readonly responses: Readonly<Record<string, Response>>;
    readonly headers: {
      readonly ErrorCode: {
        readonly "x-codes": Readonly<Record<string, { readonly status: number; readonly title: string }>>;
      };
    };
  };
}

/** Stands for a port and all of its members. */
const PORT: object = new Proxy(() => PORT, { get: () => PORT });

/** Returns the document that a server of this build serves. */
export async function readDocument(): Promise<ApiDocument> {
  const ports = {
    version: packageJson.version,
    clock: systemClock,
    jobIds: new JobIds(systemClock, systemRandom),
    telemetry: { count() {}, time() {} },
    operatorToken: "",
    registry: PORT,
    operatorAccounts: PORT,
    audit: PORT,
    whatsapp: { webhookSecrets: [] },
    wallet: PORT,
    passKit: PORT,
  };
  // Declaring the endpoints and serving the document needs no other ports.
  const server = createApi(ports as unknown as ApiPorts, CHANNELS);
  const answer = await server.handle(new Request("http://waybill.test/openapi.json"));
  // The answer is the result of `openApiDocument`.
  return (await answer.json()) as ApiDocument;
}

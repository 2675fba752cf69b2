import { type TObject, type TSchema, type TUnsafe, Type } from "@sinclair/typebox";
import { TEMPLATE_SLUG } from "../../domain/channels/email.ts";
import type { Clock } from "../../domain/clock.ts";
import { RestedTurns } from "../../domain/rested-turns.ts";
import type { TemplateRecord } from "../../domain/tenants/template-record.ts";
import type { TenantDirectory } from "../../domain/tenants/tenant.ts";
import { isJsonObject } from "../../domain/texts/json.ts";
import { ApiError } from "../../http/api-error.ts";
import { type Endpoint, reply } from "../../http/endpoint.ts";
import { managedEndpoints } from "../../http/managed-endpoint.ts";
import { OperatorBody } from "../../http/operator-body.ts";
import type { PathParameter } from "../../http/parameters.ts";
import { listSchema } from "../../http/schemas.ts";
import { noSuch, requireResult } from "../../http/store-results.ts";
import type { TemplateKind } from "../../http/template-kind.ts";
import type { TenantRegistry } from "../registry.ts";
import { templateTrialEndpoints } from "./template-trial-endpoints.ts";

const SAID_OF_SLUG = { description: "The template's slug, for `template_id`.", example: "welcome" } as const;

const slugParameter: PathParameter<string> = {
  ...SAID_OF_SLUG,
  read(text) {
    if (!isSlug(text)) throw noSuch("template");
    return text;
  },
};

const newSlugParameter: PathParameter<string> = {
  ...SAID_OF_SLUG,
  read(text) {
    if (isSlug(text)) return text;
    throw new ApiError(400, "a template's slug is 1 to 100 of A-Z, a-z, 0-9, dot, hyphen, underscore");
  },
};

const EXAMPLE = {
  slug: "welcome",
  channel: "email",
  subject: "Welcome, {{.name}}",
  html: "<p>Hello {{.name}}</p>",
  text: null,
} as const satisfies TemplateRecord;

interface Ports {
  readonly registry: Pick<
    TenantRegistry,
    "putTemplate" | "putOwnTemplate" | "template" | "templates" | "deleteTemplate"
  >;
  readonly directory: Pick<TenantDirectory, "byId">;
  readonly clock: Clock;
}

/**
 * `/dash/api/tenants/{id}/templates` and `/v1/templates`: the templates that `template_id` refers to, for every channel that has
 * templates.
 */
export function templateEndpoints(ports: Ports, kinds: readonly TemplateKind[]): readonly Endpoint[] {
  const { registry } = ports;
  const Template = Type.Unsafe<TemplateRecord>(
    Type.Union(
      kinds.map(({ answer }) => answer),
      { $id: "Template" },
    ),
  );
  const one = { 200: { description: "Done.", schema: Template, examples: [EXAMPLE] } } as const;
  const body = new TemplateBody(kinds);
  return [
    ...listing(ports, Template),
    ...managedEndpoints({
      method: "PUT",
      path: "templates/:slug",
      name: "put_template",
      operation: "putTemplate",
      audit: { body: ["channel"] },
      summary: "Create or replace a template of an e-mail or a pass",
      params: { slug: newSlugParameter },
      body: { schema: body.schema },
      answers: one,
      fails: [409],
      async handle({ tenantId, self, params: { slug }, body: given }) {
        const template = body.accept(slug, given);
        const stored =
          self === null ? registry.putTemplate(tenantId, template) : registry.putOwnTemplate(tenantId, template);
        return reply(200, requireResult(await stored));
      },
    }),
    ...managedEndpoints({
      method: "GET",
      path: "templates/:slug",
      name: "template",
      operation: "getTemplate",
      summary: "One template",
      params: { slug: slugParameter },
      answers: one,
      fails: [404],
      handle: async ({ tenantId, params: { slug } }) =>
        reply(200, requireResult(await registry.template(tenantId, slug))),
    }),
    ...deletion(registry),
    ...templateTrialEndpoints(ports, kinds, slugParameter),
  ];
}

function listing({ registry, clock }: Ports, Template: TUnsafe<TemplateRecord>): readonly Endpoint[] {
  const lists = new TemplateLists(clock);
  return managedEndpoints({
    method: "GET",
    path: "templates",
    name: "templates",
    operation: "listTemplates",
    summary: "List a tenant's templates",
    answers: {
      200: {
        description: "Done.",
        schema: listSchema("TemplateList", "templates", Template),
        examples: [{ templates: [EXAMPLE] }],
      },
    },
    async handle({ tenantId, self }) {
      const list = async () => reply(200, { templates: requireResult(await registry.templates(tenantId)) });
      return self === null ? list() : lists.of(tenantId, list);
    },
  });
}

function deletion(registry: Ports["registry"]): readonly Endpoint[] {
  return managedEndpoints({
    method: "DELETE",
    path: "templates/:slug",
    name: "delete_template",
    operation: "deleteTemplate",
    summary: "Delete a template",
    params: { slug: slugParameter },
    answers: { 204: { description: "Done.", schema: null } },
    fails: [404],
    async handle({ tenantId, params: { slug } }) {
      requireResult(await registry.deleteTemplate(tenantId, slug));
      return reply(204, null);
    },
  });
}

/**
 * A list of templates contains their full content: 15 MB in the worst case, and reading and serializing it blocks the process.
 * So each process builds one list at a time, tenants take turns, and all lists together take at most a quarter of its time.
 */
export class TemplateLists {
  private readonly turns: RestedTurns;

  constructor(clock: Clock) {
    this.turns = new RestedTurns(clock, REST_MS_MAX);
  }

  /** Builds a list in turn. Throws an `ApiError` 429 if too many lists of the tenant are waiting. */
  of<T>(tenantId: string, read: () => Promise<T>): Promise<T> {
    if (this.turns.waiting(tenantId) >= LISTS_WAITING_MAX) {
      throw new ApiError(429, "your templates are being listed: wait for that", {}, 1);
    }
    return this.turns.inTurn(tenantId, read);
  }
}

const LISTS_WAITING_MAX = 3;
/** The longest pause after a list: one that took longer was waiting, for an unavailable registry or a busy process. */
const REST_MS_MAX = 2_000;

/** The body that stores a template: its channel determines its members. */
class TemplateBody {
  readonly schema: TSchema;
  private readonly shapes: readonly Shape[];

  constructor(kinds: readonly TemplateKind[]) {
    const channels = kinds.map(({ channel }) => channel).join(" or ");
    this.shapes = kinds.map((kind) => createShape(kind, channels));
    const schemas = this.shapes.map(({ body }) => body.documented);
    this.schema = Type.Union(schemas, { examples: this.shapes[0]?.examples });
  }

  /** Throws an `ApiError` 400 that names the fault. */
  accept(slug: string, given: unknown): TemplateRecord {
    const channel = isJsonObject(given) ? given["channel"] : undefined;
    // With an unknown channel, the body does not fit the first shape either, whose error then lists the channels.
    const shape = this.shapes.find(({ kind }) => kind.channel === channel) ?? this.shapes[0];
    if (shape === undefined) throw new Error("no channel has templates");
    return shape.kind.accept(slug, shape.body.check(given));
  }
}

interface Shape {
  readonly kind: TemplateKind;
  readonly examples: readonly object[];
  readonly body: OperatorBody<TObject>;
}

function createShape(kind: TemplateKind, channels: string): Shape {
  const channel = Type.Literal(kind.channel, { description: channels });
  const examples = [{ channel: kind.channel, ...kind.example }];
  const schema = Type.Object({ channel, ...kind.members }, { ...kind.ties, additionalProperties: false, examples });
  return { kind, examples, body: new OperatorBody(schema) };
}

/** The router passes null for invalid percent-encoding. */
function isSlug(text: string | null): text is string {
  return text !== null && TEMPLATE_SLUG.test(text);
}

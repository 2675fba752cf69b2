import { Type } from "@sinclair/typebox";
import { HEADER_MEDIA_TYPES, type HeaderMedia, TEMPLATE_ALIAS } from "../../../domain/channels/whatsapp.ts";
import { ApiError } from "../../../http/api-error.ts";
import { type Endpoint, reply } from "../../../http/endpoint.ts";
import { managedEndpoints } from "../../../http/managed-endpoint.ts";
import type { PathParameter } from "../../../http/parameters.ts";
import { enumSchema, listSchema } from "../../../http/schemas.ts";
import { noSuch, requireResult } from "../../../http/store-results.ts";
import { toUri } from "../media.ts";
import { aliasBody } from "./alias-body.ts";
import type { AliasRepository } from "./alias-repository.ts";

export type Aliases = Pick<AliasRepository, "all" | "one" | "put" | "delete">;

const Alias = Type.Object(
  {
    alias: Type.String(),
    meta_name: Type.String({ description: "The provider's name of the template." }),
    language_code: Type.Union([Type.String(), Type.Null()], { description: "Null: the service's default, `es`." }),
    params: Type.Array(Type.String(), { description: "The meaning of each position." }),
    header: Type.Union([
      Type.Object({
        type: enumSchema(HEADER_MEDIA_TYPES),
        link: Type.Optional(Type.String({ format: "uri", description: "An https address. Either this or `id`." })),
        id: Type.Optional(Type.String({ description: "The provider's id of uploaded media." })),
        filename: Type.Optional(Type.String({ description: "Documents only." })),
      }),
      Type.Null(),
    ]),
  },
  { $id: "Alias" },
);

const EXAMPLE = {
  alias: "order_shipped",
  meta_name: "order_shipped_hx0123456789abcdef",
  language_code: "es",
  params: ["customer's name", "order number"],
  header: { type: "image", link: "https://api.example.com/parcel.png" },
} as const;

/** `/dash/api/tenants/{id}/aliases` and `/v1/aliases`: a tenant's own names for the chat provider's templates. */
export function aliasEndpoints(aliases: Aliases): readonly Endpoint[] {
  const one = { 200: { description: "Done.", schema: Alias, examples: [EXAMPLE] } } as const;
  return [
    ...managedEndpoints({
      method: "GET",
      path: "aliases",
      name: "aliases",
      operation: "listAliases",
      summary: "List a tenant's names for chat templates",
      answers: {
        200: {
          description: "Done.",
          schema: listSchema("AliasList", "aliases", Alias),
          examples: [{ aliases: [EXAMPLE] }],
        },
      },
      handle: async ({ tenantId }) => reply(200, { aliases: requireResult(await aliases.all(tenantId)) }),
    }),
    ...managedEndpoints({
      method: "PUT",
      path: "aliases/:alias",
      name: "put_alias",
      operation: "putAlias",
      audit: { body: ["meta_name", "language_code", "params"] },
      summary: "Create or replace a tenant's name for a chat template",
      params: { alias: newAlias },
      body: aliasBody,
      answers: one,
      fails: [409],
      async handle({ tenantId, params: { alias }, body }) {
        const { meta_name, language_code = null, params = [], header = null } = body;
        const media = header === null ? null : checkedHeader(header);
        const record = { alias, meta_name, language_code, params, header: media };
        return reply(200, requireResult(await aliases.put(tenantId, record)));
      },
    }),
    ...managedEndpoints({
      method: "GET",
      path: "aliases/:alias",
      name: "alias",
      operation: "getAlias",
      summary: "One alias",
      params: { alias: knownAlias },
      answers: one,
      fails: [404],
      handle: async ({ tenantId, params: { alias } }) => reply(200, requireResult(await aliases.one(tenantId, alias))),
    }),
    ...deletion(aliases),
  ];
}

function deletion(aliases: Aliases): readonly Endpoint[] {
  return managedEndpoints({
    method: "DELETE",
    path: "aliases/:alias",
    name: "delete_alias",
    operation: "deleteAlias",
    summary: "Delete an alias",
    params: { alias: knownAlias },
    answers: { 204: { description: "Done.", schema: null } },
    fails: [404],
    async handle({ tenantId, params: { alias } }) {
      requireResult(await aliases.delete(tenantId, alias));
      return reply(204, null);
    },
  });
}

/** Throws 400 if the text is not a valid alias. */
const newAlias: PathParameter<string> = aliasParameter(
  new ApiError(400, "an alias is 1 to 100 of A-Z, a-z, 0-9, dot, hyphen, underscore, no sign first"),
);

/** Throws 404 if the text is not a valid alias. */
const knownAlias: PathParameter<string> = aliasParameter(noSuch("alias"));

function aliasParameter(refusal: ApiError): PathParameter<string> {
  return {
    description: "What `template_id` names.",
    example: EXAMPLE.alias,
    read(text) {
      if (text === null || !TEMPLATE_ALIAS.test(text)) throw refusal;
      return text;
    },
  };
}

/** Throws 400 for a header that the provider would refuse. */
function checkedHeader(header: HeaderMedia): HeaderMedia {
  const { type, link, id, filename } = header;
  if ((link === undefined) === (id === undefined)) throw new ApiError(400, "header must have either a link or an id");
  if (link !== undefined && !URL.canParse(link)) throw new ApiError(400, "header[link] must be an https address");
  if (filename !== undefined && type !== "document") {
    throw new ApiError(400, "header[filename] is for documents only");
  }
  return link === undefined ? header : { ...header, link: toUri(link) };
}

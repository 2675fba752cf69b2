import { Type } from "@sinclair/typebox";
import { HEADER_MEDIA_TYPES, type HeaderMedia, TEMPLATE_ALIAS } from "../../domain/whatsapp.ts";
import { ApiError } from "../../http/api-error.ts";
import { type Endpoint, operatorEndpoint, reply } from "../../http/endpoint.ts";
import { OPERATOR_CONFLICT, OPERATOR_NOT_FOUND } from "../../http/failures.ts";
import { type PathParameter, tenantIdParameter } from "../../http/parameters.ts";
import { enumOf, listOf } from "../../http/schemas.ts";
import { noSuch, resultOf } from "../../http/store-results.ts";
import { aliasBody } from "./alias-body.ts";
import type { AliasRepository } from "./alias-repository.ts";

export type Aliases = Pick<AliasRepository, "all" | "one" | "put" | "delete">;

const Alias = Type.Object(
  {
    alias: Type.String(),
    meta_name: Type.String({ description: "The provider's name of the template." }),
    language_code: Type.Union([Type.String(), Type.Null()], { description: "Null: the service's default, `es`." }),
    params: Type.Array(Type.String(), { description: "What each position holds." }),
    header: Type.Union([
      Type.Object({
        type: enumOf(HEADER_MEDIA_TYPES),
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

const PATH = "/dash/api/tenants/:id/aliases/:alias";
const COMMON = { name: "operator", tag: "Tenants" } as const;

/** `/dash/api/tenants/{id}/aliases`: a tenant's own names for the chat provider's templates. */
export function aliasEndpoints(aliases: Aliases): readonly Endpoint[] {
  return [listAliases(aliases), putAlias(aliases), getAlias(aliases), deleteAlias(aliases)];
}

function listAliases(aliases: Aliases): Endpoint {
  const schema = listOf("AliasList", "aliases", Alias);
  return operatorEndpoint({
    ...COMMON,
    method: "GET",
    path: "/dash/api/tenants/:id/aliases",
    operation: "listAliases",
    summary: "List a tenant's names for chat templates",
    params: { id: tenantIdParameter },
    answers: { 200: { description: "Done.", schema, examples: [{ aliases: [EXAMPLE] }] } },
    fails: { 404: OPERATOR_NOT_FOUND },
    handle: async ({ params: { id } }) => reply(200, { aliases: resultOf(await aliases.all(id)) }),
  });
}

function putAlias(aliases: Aliases): Endpoint {
  return operatorEndpoint({
    ...COMMON,
    method: "PUT",
    path: PATH,
    operation: "putAlias",
    summary: "Create or replace a tenant's name for a chat template",
    params: { id: tenantIdParameter, alias: newAlias },
    body: aliasBody,
    answers: { 200: { description: "Done.", schema: Alias, examples: [EXAMPLE] } },
    fails: { 404: OPERATOR_NOT_FOUND, 409: OPERATOR_CONFLICT },
    async handle({ params: { id, alias }, body }) {
      const { meta_name, language_code = null, params = [], header = null } = body;
      const media = header === null ? null : checkedHeader(header);
      const stored = await aliases.put(id, { alias, meta_name, language_code, params, header: media });
      if (stored.kind === "full") {
        throw new ApiError(409, `A tenant has at most ${stored.most} aliases: delete one that is not used.`);
      }
      return reply(200, resultOf(stored));
    },
  });
}

function getAlias(aliases: Aliases): Endpoint {
  return operatorEndpoint({
    ...COMMON,
    method: "GET",
    path: PATH,
    operation: "getAlias",
    summary: "One alias",
    params: { id: tenantIdParameter, alias: knownAlias },
    answers: { 200: { description: "Done.", schema: Alias, examples: [EXAMPLE] } },
    fails: { 404: OPERATOR_NOT_FOUND },
    handle: async ({ params: { id, alias } }) => reply(200, resultOf(await aliases.one(id, alias))),
  });
}

function deleteAlias(aliases: Aliases): Endpoint {
  return operatorEndpoint({
    ...COMMON,
    method: "DELETE",
    path: PATH,
    operation: "deleteAlias",
    summary: "Delete an alias",
    params: { id: tenantIdParameter, alias: knownAlias },
    answers: { 204: { description: "Done.", schema: null } },
    fails: { 404: OPERATOR_NOT_FOUND },
    async handle({ params: { id, alias } }) {
      resultOf(await aliases.delete(id, alias));
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
  return header;
}

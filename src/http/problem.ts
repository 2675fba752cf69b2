import { Type } from "@sinclair/typebox";
import type { ApiError } from "./api-error.ts";
import { ERROR_CODES, type ErrorCode, type Told } from "./error-codes.ts";
import { enumSchema } from "./schemas.ts";

/*
 * Error bodies for programs that ask for them: RFC 9457, "Problem Details for HTTP APIs".
 */

export const JSON_TYPE = "application/json";
export const PROBLEM_TYPE = "application/problem+json";

// All of them are keys.
const CODES = Object.keys(ERROR_CODES) as ErrorCode[];

export const ErrorCodeName = {
  ...enumSchema(CODES, "Why a call was refused, in one word for programs. Later releases have more."),
  $id: "ErrorCode",
};

export const ParamName = Type.String({
  description: "The member or parameter that it is about, such as `fallback[0].send.subject`.",
});

export const Problem = Type.Object(
  {
    type: Type.String({ description: "One of each code, relative to the server's address." }),
    title: Type.String({ description: "The meaning of the code." }),
    status: Type.Integer(),
    detail: Type.String({ description: "The sentence of `error`." }),
    code: ErrorCodeName,
    param: Type.Optional(ParamName),
  },
  { $id: "Problem", additionalProperties: true },
);

/** The body of a problem, with the further members of the error. */
export function toProblem({ status, message, members }: ApiError, { code, param }: Told): object {
  const { title } = ERROR_CODES[code];
  return {
    ...members,
    type: `/docs#error-${code}`,
    title,
    status,
    detail: message,
    code,
    ...(param !== null && { param }),
  };
}

/** Longer headers than any program's count as absent. */
const HEADER_CHARS_MAX = 2_000;

/**
 * Whether an error is to be a problem: the request names the type, and prefers `application/json` to it neither by name nor by
 * a range (RFC 9110, 12.5.1). A program that names both with equal weight supports problems.
 */
export function wantsProblem({ headers }: Request): boolean {
  const accept = headers.get("accept");
  if (accept === null || accept.length > HEADER_CHARS_MAX) return false;
  const ranges = new Map(accept.toLowerCase().split(",").map(weighed));
  const weight = ranges.get(PROBLEM_TYPE) ?? 0;
  const ofJson = ranges.get(JSON_TYPE) ?? ranges.get("application/*") ?? ranges.get("*/*") ?? 0;
  return weight > 0 && weight >= ofJson;
}

/** A media range with its weight; 0 for one that is malformed. */
function weighed(range: string): readonly [name: string, weight: number] {
  const [name = "", ...parameters] = range.split(";").map((part) => part.trim());
  const given = parameters.find((each) => each.startsWith("q="))?.slice(2);
  const isWeight = given === undefined || /^(?:0(?:\.\d{0,3})?|1(?:\.0{0,3})?)$/.test(given);
  return [name, isWeight ? Number(given ?? 1) : 0];
}

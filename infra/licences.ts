import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { type LockedPackage, lockedPackages } from "./locked-packages.ts";

/*
 * `bun infra/licences.ts` writes docs/licences.md from the packages of bun.lock as they are installed; with --check it only
 * reports whether the page is current. Either way it fails when a package has a licence that has not been reviewed.
 */

/** Licences that require no more than their own text and notices beside a copy, each reviewed against Waybill's MIT. */
const PERMISSIVE: Readonly<Record<string, string>> = {
  MIT: "Waybill's own",
  "MIT-0": "MIT that does not ask for its notice",
  ISC: "as MIT, in fewer words",
  "0BSD": "asks for nothing",
  Unlicense: "public domain",
  "CC0-1.0": "public domain",
  "BSD-2-Clause": "keep the notice",
  "BSD-3-Clause": "keep the notice, do not advertise with the authors' names",
  "BlueOak-1.0.0": "keep the licence or a link to it",
  "Apache-2.0":
    "keep licence and NOTICE, say what was changed; grants patents. MIT code may use it; a copy of the package stays under it",
};

/** Licences with conditions for distributing copies. Only packages that no release contains may have them. */
const DEVELOPMENT_ONLY: Readonly<Record<string, string>> = {
  "MPL-2.0": "changed files stay under it; Waybill changes none, and its releases do not contain the package",
};

const ROOT = new URL("..", import.meta.url).pathname;
const PAGE = `${ROOT}/docs/licences.md`;

export interface Licensed extends Pick<LockedPackage, "name" | "version"> {
  readonly licence: string;
}

/** Returns the packages with their declared licences. Platform builds have the licence of the package that needs them. */
function licensed(packages: readonly LockedPackage[]): readonly Licensed[] {
  return packages
    .filter(({ isPlatformBuild }) => !isPlatformBuild)
    .map(({ name, version, folder }) => {
      const { license } = JSON.parse(readFileSync(`${ROOT}/${folder}/package.json`, "utf8"));
      return { name, version, licence: typeof license === "string" ? license : "none" };
    });
}

/**
 * Returns the packages whose licences are not among `judged`, one line each. One of several alternatives ("A OR B") is enough.
 */
export function unjudged(packages: readonly Licensed[], judged: Readonly<Record<string, string>>): readonly string[] {
  const isJudged = (licence: string) => {
    const alternatives = licence.replaceAll(/[()]/g, "").split(" OR ");
    return alternatives.some((alternative) => alternative.split(" AND ").every((part) => Object.hasOwn(judged, part)));
  };
  return packages
    .filter(({ licence }) => !isJudged(licence))
    .map(
      ({ name, version, licence }) => `${name} ${version}: the licence ${licence} is in no list of infra/licences.ts`,
    );
}

function page(production: readonly Licensed[], development: readonly Licensed[]): string {
  const judged = Object.entries(PERMISSIVE).map(([name, why]) => `| ${name} | everywhere | ${why} |`);
  const bound = Object.entries(DEVELOPMENT_ONLY).map(([name, why]) => `| ${name} | development alone | ${why} |`);
  return [
    INTRODUCTION,
    table("| licence | allowed | because |", [...judged, ...bound]),
    "## Packages of a release\n",
    table("| package | version | licence |", production.map(row)),
    "## Packages that only make and test it\n",
    table("| package | version | licence |", development.map(row)),
  ].join("\n");
}

function table(head: string, rows: readonly string[]): string {
  return `${head}\n|---|---|---|\n${rows.join("\n")}\n`;
}

function row({ name, version, licence }: Licensed): string {
  return `| ${name} | ${version} | ${licence} |`;
}

const INTRODUCTION = `# Licences

Waybill is under the [MIT licence](../LICENSE). This page lists the licences of all that it needs, and why each agrees with that.
\`bun infra/licences.ts\` writes it from \`bun.lock\` and the installed packages; \`npm run check\` fails when it is not current, or when
a package comes with a licence that is not in the table below.

The npm package contains Waybill alone: npm gets the rest from its makers. The image contains the packages of a release with
their licence files, Bun, and Debian's \`redis-server\`. Whoever passes the image on passes these on, too.

## Engines

Programs of others run beside or inside Waybill, unchanged, each replaceable by a server of your own.

| engine | licence | what follows |
|---|---|---|
| chDB (\`chdb\`, \`@chdb/lib-…\`): ClickHouse as a library | Apache-2.0 | its table \`system.licenses\` lists what ClickHouse's sources contain. Nearly all of it is permissive; LGPL are lemmagen-c, libgsasl, libssh, mariadb-connector-c, numactl and xz. The library is a file of its own (\`libchdb.so\`), loaded at run time and not changed, so it can be replaced as the LGPL asks; Waybill's own code stays MIT. With \`CLICKHOUSE_URL\` it is not loaded |
| PGlite (\`@electric-sql/pglite\`): PostgreSQL as WebAssembly | Apache-2.0, PostgreSQL within it under the PostgreSQL licence | keep the notices. Not loaded with \`DATABASE_URL\` |
| \`redis-server\`: the system's own, started as a child process | by version: BSD-3-Clause up to 7.2; RSALv2 or SSPLv1 from 7.4; these or AGPLv3 from 8.0 | Waybill speaks to it over a socket, so none of these reaches Waybill's code. Debian 12 has 7.0 (BSD), the image's Debian 13 has 8.0 (of which AGPLv3 is the open choice). RSAL and SSPL are not open source: they restrict who *offers Redis itself* as a service, which Waybill does not do. Not started with \`REDIS_URL\` |
| Bun | MIT; it links JavaScriptCore (LGPL-2.1) and others that its licence page lists | \`bootstrap.sh\` gets it from npm; the image contains it |
| Postfix, in the second image alone | IPL-1.0 or EPL-2.0 | a program of its own, with Waybill's settings |

Builds for one kind of machine (\`@chdb/lib-linux-x64-gnu\`, for example) are not listed: they have the licence of the package that needs
them. \`swagger-ui-dist\` brings \`@scarf/scarf\`, whose install script tells its makers that it was installed. Bun would run it
unasked; in a checkout Bun runs no package's install script (\`trustedDependencies\` in package.json). npm may run it, and with
\`SCARF_ANALYTICS=false\` it tells nothing. Nothing of it runs in Waybill.

Tests and benchmarks also start programs of the system where they are there (PostgreSQL, Postfix, rspamd, Chromium, promtool): these
are in no release.

## What is allowed
`;

function main(isCheck: boolean): number {
  const { production, development } = lockedPackages();
  const [released, others] = [licensed(production), licensed(development)];
  const problems = [...unjudged(released, PERMISSIVE), ...unjudged(others, { ...PERMISSIVE, ...DEVELOPMENT_ONLY })];
  const written = page(released, others);
  if (isCheck && (!existsSync(PAGE) || readFileSync(PAGE, "utf8") !== written))
    problems.push("docs/licences.md is not current: bun infra/licences.ts");
  if (!isCheck) writeFileSync(PAGE, written);
  for (const problem of problems) console.log(problem);
  return problems.length === 0 ? 0 : 1;
}

if (import.meta.main) process.exitCode = main(process.argv.includes("--check"));

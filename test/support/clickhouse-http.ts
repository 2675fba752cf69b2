import { Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import type { ClickHouseClient, ClickHouseError } from "@clickhouse/client";

/** Serves an engine over the subset of ClickHouse's HTTP protocol that the client uses, on its own loopback port. */
export function serveClickHouse(engine: ClickHouseClient) {
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    async fetch(request) {
      const asked = new URL(request.url).searchParams;
      const inUrl = asked.get("query");
      // Plain values only: nothing is escaped.
      const params = Object.fromEntries(
        [...asked].flatMap(([name, value]) => (name.startsWith("param_") ? [[name.slice(6), value]] : [])),
      );
      const body = await request.text();
      try {
        const { stream } =
          inUrl === null
            ? await engine.exec({ query: body, query_params: params })
            : await engine.exec({ query: inUrl, values: Readable.from([Buffer.from(body)], { objectMode: false }) });
        return new Response(await buffer(stream));
      } catch (error) {
        // The driver bundles its own copy of the client's error class, with the same members.
        const { code, message, type } = error as ClickHouseError;
        return new Response(`Code: ${code}. DB::Exception: ${message} (${type})`, { status: 500 });
      }
    },
  });
  return { url: server.url.href, stop: () => server.stop(true) };
}

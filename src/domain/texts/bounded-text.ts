/**
 * Returns an answer's body as text, read to its end so that its connection can be reused. Null: it is longer, and
 * reading was given up.
 */
export async function boundedText({ body }: Response, bytesMax: number): Promise<string | null> {
  const stream: AsyncIterable<Uint8Array> | null = body;
  if (stream === null) return "";
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of stream) {
    bytes += chunk.length;
    // Leaving the loop cancels the stream.
    if (bytes > bytesMax) return null;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks, bytes).toString("utf8");
}

export async function micro(): Promise<null> {
  const child = Bun.spawn([process.execPath, `${import.meta.dir}/../micro/micro.ts`], {
    stdout: "inherit",
    stderr: "inherit",
  });
  if ((await child.exited) !== 0) throw new Error("the micro-benchmarks failed");
  return null;
}

import { GroupCommit, type GroupCommitOptions } from "./group-commit.ts";

/**
 * Group commits by destination: a single Redis takes all shards in one call, a cluster takes one call per slot, so that
 * an unavailable node holds up only its own shards.
 */
export class ShardCommits<Item, Answer> {
  private readonly commits = new Map<number, GroupCommit<Item, Answer>>();

  constructor(
    private readonly shardsPerCall: "all" | "one",
    private readonly options: GroupCommitOptions<Item, Answer>,
  ) {}

  submit(shard: number, item: Item): Promise<Answer> {
    const place = this.shardsPerCall === "all" ? 0 : shard;
    let commit = this.commits.get(place);
    if (commit === undefined) {
      commit = new GroupCommit(this.options);
      this.commits.set(place, commit);
    }
    return commit.submit(item);
  }
}

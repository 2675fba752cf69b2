/** What a tenant sorts its messages by. */
export interface Tag {
  readonly name: string;
  readonly value: string;
}

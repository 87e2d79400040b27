/** What a published commit says about itself. Trailers are read by the next publisher, and by people with `git log`. */

export const trailers = {
  cluster: 'Keelson-Cluster',
  specCommit: 'Keelson-Spec-Commit',
  payload: 'Keelson-Payload',
  version: 'Keelson-Version',
} as const;

export interface CommitFacts {
  readonly cluster: string;
  readonly specCommit?: string;
  readonly version: string;
  readonly releases: readonly { readonly name: string; readonly digest: string }[];
  /** Releases whose payload differs from that of the previous tree. */
  readonly changed: readonly string[];
}

export function commitMessage(facts: CommitFacts): string {
  const what =
    facts.changed.length === 0 ? 'update what is around the payloads' : `publish ${facts.changed.join(', ')}`;
  const subject = `${facts.cluster}: ${what}`;
  const lines = [
    `${trailers.cluster}: ${facts.cluster}`,
    ...(facts.specCommit === undefined ? [] : [`${trailers.specCommit}: ${facts.specCommit}`]),
    ...facts.releases.map(({ name, digest }) => `${trailers.payload}: ${name} ${digest}`),
    `${trailers.version}: ${facts.version}`,
  ];
  return `${subject.length <= 100 ? subject : `${subject.slice(0, 97)}...`}\n\n${lines.join('\n')}\n`;
}

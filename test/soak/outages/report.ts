/** What a scenario found, and how it is told. Pure. */

/** Seconds, counts and words in the order in which they are told. */
export type Facts = Readonly<Record<string, number | string>>;

export interface Outcome {
  readonly scenario: string;
  readonly facts: Facts;
  /** What did not hold; none is well. */
  readonly problems: readonly string[];
}

const one = (value: number | string): string =>
  typeof value === 'string' ? value : Number.isInteger(value) ? String(value) : value.toFixed(1);

/** One block a scenario: whether it held, then its facts, one a line. */
export function table(outcomes: readonly Outcome[]): string {
  return outcomes
    .map(({ scenario, facts, problems }) => {
      const width = Math.max(...Object.keys(facts).map((label) => label.length));
      const rows = Object.entries(facts).map(([label, value]) => `  ${label.padEnd(width)}  ${one(value)}`);
      const held = problems.length === 0 ? 'held' : 'DID NOT HOLD';
      return [`${scenario}: ${held}`, ...rows, ...problems.map((problem) => `  ! ${problem}`)].join('\n');
    })
    .join('\n\n');
}

/** The same for programs; seconds to a tenth. */
export const report = (outcomes: readonly Outcome[]): string =>
  JSON.stringify(
    {
      held: outcomes.every(({ problems }) => problems.length === 0),
      scenarios: outcomes.map(({ scenario, facts, problems }) => ({
        scenario,
        held: problems.length === 0,
        facts: Object.fromEntries(
          Object.entries(facts).map(([label, value]) => [
            label,
            typeof value === 'number' ? Math.round(value * 10) / 10 : value,
          ]),
        ),
        problems,
      })),
    },
    undefined,
    2,
  );

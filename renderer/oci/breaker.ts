import type { RegistrySession } from './session.ts';
import { failed, type RegistryOutcome } from './types.ts';

/** So many requests in a row, each tried as often as it may be, and a registry counts as lost for the rest of the run. */
const enough = 3;

/** What is answered where there is no registry, or none for us. Others say something about one request. */
const away = new Set([429, 502, 503, 504]);

/**
 * A session that does not wait for a registry again and again: what would fail like all before it fails at once. One answer
 * takes everything back.
 */
export function withBreaker(session: RegistrySession): RegistrySession {
  const failures = new Map<string, { count: number; message: string }>();

  const note = (registry: string, message: string | undefined): void => {
    const count = message === undefined ? 0 : (failures.get(registry)?.count ?? 0) + 1;
    failures.set(registry, { count, message: message ?? '' });
  };

  const trouble = (outcome: Awaited<ReturnType<RegistrySession['send']>>): string | undefined => {
    if (!outcome.ok) return outcome.failure.kind === 'unavailable' ? outcome.failure.message : undefined;
    const { status, url } = outcome.value;
    return away.has(status) ? `${url} answered ${status}` : undefined;
  };

  return {
    ...session,
    async send(ref, request): Promise<RegistryOutcome<never> | Awaited<ReturnType<RegistrySession['send']>>> {
      const known = failures.get(ref.registry);
      if (known !== undefined && known.count >= enough)
        return failed('unavailable', `${ref.registry} was given up: ${known.message}`, 'mirror again when it answers');
      const outcome = await session.send(ref, request);
      note(ref.registry, trouble(outcome));
      return outcome;
    },
  };
}

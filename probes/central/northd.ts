/** ovn-northd as it tells of itself. */
import type { NorthdFacts } from '../../constructs/api/evidence/central.ts';
import { askDaemon } from '../daemons/ask.ts';
import type { Look } from '../daemons/look.ts';
import { ok, type Result } from '../jsonrpc/fault.ts';
import { readConnectionStatus, readNorthdStatus, readVersion } from '../unixctl/words.ts';
import type { CentralOptions } from './options.ts';

export function northdFacts(options: CentralOptions, look: Look): Promise<Result<NorthdFacts>> {
  return askDaemon(
    { ...options, directory: options.runDirectory, program: 'ovn-northd' },
    look,
    async (control, daemon) => {
      const state = await control.ask('status', [], readNorthdStatus);
      if (state.type !== 'ok') return state;
      const nb = await control.ask('nb-connection-status', [], readConnectionStatus);
      if (nb.type !== 'ok') return nb;
      const sb = await control.ask('sb-connection-status', [], readConnectionStatus);
      if (sb.type !== 'ok') return sb;
      const version = await control.ask('version', [], readVersion);
      if (version.type !== 'ok') return version;
      return ok({ state: state.value, nb: nb.value, sb: sb.value, version: version.value, daemon });
    },
  );
}

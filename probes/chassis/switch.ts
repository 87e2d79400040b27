/** ovs-vswitchd as it tells of itself. */
import type { ChassisFacts } from '../../constructs/api/evidence/chassis.ts';
import { askDaemon } from '../daemons/ask.ts';
import type { Look } from '../daemons/look.ts';
import { ok, type Result } from '../jsonrpc/fault.ts';
import { readAs } from '../unixctl/reading.ts';
import { readLines, readVersion } from '../unixctl/words.ts';
import type { ChassisOptions } from './options.ts';

type Switch = NonNullable<ChassisFacts['vswitchd']>;

/** Whether the running switch has the bridge: the row in the database only says that it should. */
export function switchFacts(options: ChassisOptions, look: Look): Promise<Result<Switch>> {
  const { bridge, switchDirectory } = options;
  return askDaemon(
    { ...options, directory: switchDirectory, program: 'ovs-vswitchd' },
    look,
    async (control, daemon) => {
      const lines = (text: string) => readAs(readLines(text));
      const bridges = await control.ask('ofproto/list', [], lines);
      if (bridges.type !== 'ok') return bridges;
      const datapaths = await control.ask('dpif/dump-dps', [], lines);
      if (datapaths.type !== 'ok') return datapaths;
      const version = await control.ask('version', [], readVersion);
      if (version.type !== 'ok') return version;
      // `type@bridge`, a line for every bridge that runs.
      const running = datapaths.value.find((line) => line.endsWith(`@${bridge}`));
      return ok({
        bridge: {
          name: bridge,
          inVswitchd: bridges.value.includes(bridge),
          ...(running === undefined ? {} : { datapath: running.slice(0, -bridge.length - 1).slice(0, 64) }),
        },
        version: version.value,
        daemon,
      });
    },
  );
}

/** ovn-controller as it tells of itself. */
import type { ChassisFacts } from '../../constructs/api/evidence/chassis.ts';
import { askDaemon } from '../daemons/ask.ts';
import type { Look } from '../daemons/look.ts';
import { ok, type Result } from '../jsonrpc/fault.ts';
import { readConnectionStatus, readPaused, readVersion } from '../unixctl/words.ts';
import type { ChassisOptions } from './options.ts';

type Controller = NonNullable<ChassisFacts['controller']>;

/**
 * That it is connected does not mean that it works: one that waits for a northd of its own version is connected as well.
 * That takes the southbound database to tell, which is not asked from here.
 */
export function controllerFacts(options: ChassisOptions, look: Look): Promise<Result<Controller>> {
  const place = { ...options, directory: options.controllerDirectory, program: 'ovn-controller' };
  return askDaemon(place, look, async (control, daemon) => {
    const connected = await control.ask('connection-status', [], readConnectionStatus);
    if (connected.type !== 'ok') return connected;
    const paused = await control.ask('debug/status', [], readPaused);
    if (paused.type !== 'ok') return paused;
    const version = await control.ask('version', [], readVersion);
    if (version.type !== 'ok') return version;
    return ok({ connected: connected.value, paused: paused.value, version: version.value, daemon });
  });
}

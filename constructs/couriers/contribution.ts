import { kinds } from '../api/kinds/index.ts';
import { reportsOutcome } from '../api/kinds/kind.ts';
import { dumpYaml } from '../lib/yaml.ts';
import { courierFixtures } from './fixtures.ts';
import { healthLua } from './health.ts';

/** Folder that holds nothing but generated files. */
export const contributionFolder = 'docs/argocd/resource_customizations';

/** One object for each health that Argo CD knows, and one that nothing has looked at. */
const shown = ['unseen', 'applying', 'steady', 'terminal', 'paused-ready'];

/**
 * The health checks in the form in which Argo CD carries customizations itself, with their tests, by path from the root of
 * the project: for those who build Argo CD, and for its own repository.
 */
export function contributionFiles(): Map<string, string> {
  const files = new Map<string, string>();
  for (const kind of kinds.filter(reportsOutcome)) {
    const folder = `${contributionFolder}/${kind.group}/${kind.kind}`;
    const fixtures = courierFixtures(kind).filter(({ name }) => shown.includes(name));
    files.set(`${folder}/health.lua`, healthLua);
    files.set(
      `${folder}/health_test.yaml`,
      dumpYaml({
        tests: fixtures.map(({ name, argo, message }) => ({
          healthStatus: { status: argo, message },
          inputPath: `testdata/${name}.yaml`,
        })),
      }),
    );
    for (const { name, object } of fixtures) files.set(`${folder}/testdata/${name}.yaml`, dumpYaml(object));
  }
  return files;
}

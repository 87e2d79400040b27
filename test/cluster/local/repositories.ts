import { mkdir } from 'node:fs/promises';
import { simpleGit } from 'simple-git';

/** Where the two repositories of a local cluster are. */
export interface Repositories {
  /** Work tree with the specs. */
  readonly specs: string;
  /** Bare repository that receives the rendered tree. */
  readonly rendered: string;
}

const identity = { name: 'Keelson quickstart', email: 'quickstart@keelson.invalid' };

/** Git with an identity of its own, and an error for every exit code but 0. */
function git(directory: string) {
  return simpleGit({
    baseDir: directory,
    config: [
      `user.name=${identity.name}`,
      `user.email=${identity.email}`,
      'commit.gpgsign=false',
      'init.defaultBranch=main',
    ],
    errors: (error, result) => {
      if (error !== undefined) return error;
      if (result.exitCode === 0) return undefined;
      return Buffer.from(`git ended with ${result.exitCode}: ${Buffer.concat(result.stdErr).toString()}`);
    },
  });
}

/** Makes both repositories: the specs with a work tree, the rendered one bare. */
export async function makeRepositories(place: Repositories): Promise<void> {
  await mkdir(place.specs, { recursive: true });
  await mkdir(place.rendered, { recursive: true });
  const specs = git(place.specs);
  await specs.init();
  // People commit here by hand as well, also on a machine where nobody has told Git who they are.
  await specs.addConfig('user.name', identity.name);
  await specs.addConfig('user.email', identity.email);
  await git(place.rendered).init(true);
}

/** Commits everything in the specs' work tree. */
export async function commitSpecs(place: Pick<Repositories, 'specs'>, message: string): Promise<void> {
  const specs = git(place.specs);
  await specs.add('.');
  await specs.commit(message);
}

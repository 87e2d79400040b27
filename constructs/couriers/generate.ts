/** Writes the health checks in the form in which Argo CD carries them. */
import { generate } from '../api/generation.ts';
import { contributionFiles, contributionFolder } from './contribution.ts';

generate(contributionFiles(), [contributionFolder]);

/** Writes the generated files of the formats: CRDs and reference pages. */
import { generatedFiles, generatedFolders } from './generated-files.ts';
import { generate } from './generation.ts';

generate(generatedFiles(), generatedFolders);

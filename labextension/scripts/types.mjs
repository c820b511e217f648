// Writes src/model/protocol.ts from the Python structs; with --check it only compares.
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

import { compile } from 'json-schema-to-typescript';
import { format, resolveConfig } from 'prettier';

const here = resolve(dirname(fileURLToPath(import.meta.url)), '..');
const repository = resolve(here, '..');
const target = resolve(here, 'src/model/protocol.ts');

/** The interpreter that has Workbench's dependencies: $PYTHON, the repository's own, or python3. */
function interpreter() {
  const own = resolve(repository, '.venv/bin/python');
  return process.env.PYTHON ?? (existsSync(own) ? own : 'python3');
}

const schema = JSON.parse(
  execFileSync(interpreter(), ['-m', 'workbench.protocol.schema'], {
    cwd: repository,
    encoding: 'utf8'
  })
);
const types = await compile(schema, 'FromServer', {
  bannerComment: [
    '/**',
    ' * What the server half sends. Generated from workbench/protocol by `npm run types`:',
    ' * change the Python structs, not this file.',
    ' */'
  ].join('\n'),
  additionalProperties: false,
  unreachableDefinitions: true,
  format: false
});
const body = types.replace(/export interface FromServer \{[^}]*\}\n/, '');
const formatted = await format(
  `${body}\n/** The protocol that this page was built for. */\nexport const PROTOCOL = ${schema['x-protocol']};\n`,
  { ...(await resolveConfig(target)), parser: 'typescript' }
);
// The generator notes where each definition came from; that is noise here.
const source = formatted.replace(
  /( \*\n)? \* This interface was referenced by .*\n \* via the `definition` .*\n/g,
  ''
);

if (!process.argv.includes('--check')) {
  writeFileSync(target, source);
} else if (readFileSync(target, 'utf8') !== source) {
  console.error('src/model/protocol.ts differs from workbench/protocol. Run: npm run types');
  process.exitCode = 1;
}

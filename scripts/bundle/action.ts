import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { rolldown } from 'rolldown'

const ACTION = join(import.meta.dirname, '../../integrations/github-action')

/** The programs of the action: the step, its end, and the process that beats in between. */
export const PROGRAMS = ['main', 'post', 'beat'] as const

/** GitHub runs an action from its repository, where nobody installs packages: each program is one file with all it needs. */
export async function bundleAction(directory = join(ACTION, 'dist')): Promise<void> {
  await mkdir(directory, { recursive: true })
  for (const name of PROGRAMS) {
    const built = await rolldown({
      input: join(ACTION, 'src', `${name}.ts`),
      platform: 'node',
      external: /^node:/,
      transform: { target: 'node24' },
    })
    await built.write({
      file: join(directory, `${name}.mjs`),
      format: 'esm',
      codeSplitting: false,
      comments: { legal: true, annotation: false, jsdoc: false },
    })
    await built.close()
  }
}

// `node scripts/bundle/action.ts` writes the files that are committed.
if (process.argv[1] === fileURLToPath(import.meta.url)) await bundleAction()

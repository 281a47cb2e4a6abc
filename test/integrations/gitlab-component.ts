import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { expect } from 'vitest'
import { parse } from 'yaml'
import type { WorkloadIssuer } from '../support/workload-issuer.ts'

type Env = Readonly<Record<string, string>>

export const TEMPLATE = fileURLToPath(
  new URL('../../integrations/gitlab/templates/mayfly.yml', import.meta.url),
)

interface Input {
  readonly default?: string
  readonly regex?: string
}

export interface GitlabJob {
  readonly stage: string
  readonly image: string
  readonly id_tokens?: Readonly<Record<string, { readonly aud: string }>>
  readonly variables: Readonly<Record<string, string>>
  readonly script: readonly string[]
  readonly after_script?: readonly string[]
}

/** As GitLab: inputs are required unless they have a default, are checked, and replace their places in the text (docs.gitlab.com/ci/inputs). */
export async function include(inputs: Readonly<Record<string, string>>): Promise<Record<string, GitlabJob>> {
  const text = await readFile(TEMPLATE, 'utf8')
  const [header, ...rest] = text.split(/^---$/m)
  expect(rest).toHaveLength(1)
  const known: Record<string, Input> = parse(header ?? '').spec.inputs
  for (const name of Object.keys(inputs)) expect(Object.keys(known)).toContain(name)
  const filled = (rest[0] ?? '').replace(/\$\[\[ inputs\.([\w-]+) \]\]/g, (_, name: string) => {
    const input = known[name]
    const value = inputs[name] ?? input?.default
    if (input === undefined || value === undefined) throw new Error(`the input ${name} is required`)
    if (input.regex !== undefined && !new RegExp(input.regex).test(value))
      throw new Error(`the input ${name} is not of the form ${input.regex}`)
    return value
  })
  expect(filled).not.toContain('$[[')
  return parse(filled)
}

/** As its runner: one shell for the script, another for `after_script`, and the log of both. */
export async function runGitlabJob(
  { id_tokens = {}, variables, script, after_script = [] }: GitlabJob,
  issuer: Pick<WorkloadIssuer, 'sign'>,
  { cwd, env: own, more = {} }: { cwd: string; env: Env; more?: Env },
) {
  const tokens = Object.entries(id_tokens).map(([name, { aud }]) => [name, issuer.sign({ aud })])
  const env = { ...own, ...variables, ...Object.fromEntries(tokens), ...more }
  let log = ''
  const shell = async (lines: readonly string[]) => {
    const child = spawn('bash', ['-eo', 'pipefail', '-c', lines.join('\n')], { env, cwd })
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding('utf8').on('data', (text) => {
        log += text
      })
    child.stdin.end()
    return (await once(child, 'close'))[0]
  }
  const code = await shell(script)
  // Whatever became of the script.
  const after = await shell(after_script)
  return { code, after, log }
}

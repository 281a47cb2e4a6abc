import { realpath } from 'node:fs/promises'
import { resolve } from 'node:path'
import { flag, yesTo } from '../frame/options.ts'
import { confirmed } from '../frame/prompt.ts'
import { type Context, defineVerb } from '../frame/verb.ts'
import { isAllowed, readAllowed, recordAllowed, revokeAllowed } from '../project-file/allowed.ts'
import { describeChange, describeProject } from '../project-file/describe.ts'
import { findProjectFile, noteOldName } from '../project-file/find.ts'
import { openProjectFile, PROJECT_FILE, type ProjectFile } from '../project-file/open.ts'
import { type Project, readProjectFile } from '../project-file/read.ts'

export const verb = defineVerb({
  description:
    'Shows what a .mayfly.yaml asks for, asks for confirmation, and lets `mayfly run` use it. A file that has changed is used only after you allow it again; the difference is shown.',
  arguments: [{ name: '[file]', description: 'by default the .mayfly.yaml that `mayfly run` would use' }],
  options: {
    ...yesTo('do not ask for confirmation'),
    revoke: flag('take back the permission for this file'),
  },
  examples: {
    'mayfly allow': 'the .mayfly.yaml of a repository that you cloned',
    'mayfly allow --yes ci/credentials.yaml': 'in a script, for a file that you have read',
    'mayfly allow --revoke': 'until you allow it again',
  },
  json: '{path, allowed: boolean}',
  run: async (context, { yes, revoke }, named) => {
    const given = named ?? (await findProjectFile(context)) ?? PROJECT_FILE
    if (revoke === true) return takeBack(context, given)
    if (named === undefined) noteOldName(context, given)
    const file = await openProjectFile(context, given)
    const project = await readProjectFile(file)
    const before = await readAllowed(context, file.path)
    const done = { path: file.path, allowed: true }
    if (isAllowed(before, file)) return context.out.report(done, `${given} is already allowed.`)
    context.out.note(await describe(file, project, before?.text))
    const otherwise = 'Read what it asks for, then use --yes.'
    await confirmed(context, yes, `Allow ${given}?`, {
      otherwise,
      no: `${given} is not allowed.`,
      hint: 'Ignore it with `mayfly run --no-config`.',
    })
    await recordAllowed(context, file)
    return context.out.report(done, `Allowed ${given}.`)
  },
})

async function describe(file: ProjectFile, project: Project, before: string | undefined): Promise<string> {
  if (before === undefined) return `${file.shown} asks for:\n${describeProject(project)}`
  const change = describeChange(await readOld(file, before), project)
  const what = /^[+-]/m.test(change) ? 'has changed' : 'has changed only in layout or comments'
  return `${file.shown} ${what}. It asks for:\n${change}`
}

/** Nothing where another version of Mayfly allowed what this one refuses: all is new then. */
async function readOld(file: ProjectFile, text: string): Promise<Project> {
  return readProjectFile({ ...file, bytes: Buffer.from(text) }).catch(() => NOTHING)
}

const NOTHING: Project = { credentials: [], proxy: undefined }

/** The file itself may be gone. */
async function takeBack(context: Context, given: string): Promise<void> {
  const named = resolve(context.cwd, given)
  const path = await realpath(named).catch(() => named)
  const was = await revokeAllowed(context, path)
  await context.out.report(
    { path, allowed: false },
    was ? `${given} is not allowed any more.` : `${given} was not allowed.`,
  )
}

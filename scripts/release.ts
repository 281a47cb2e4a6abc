import { execFileSync } from 'node:child_process'
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { releaseNotes } from './release/notes.ts'

/** Checks that this commit can be released, builds what is published into `dist-package`, and writes the notes there. */
const ROOT = join(import.meta.dirname, '..')
const out = join(ROOT, 'dist-package')
const read = (name: string) => readFileSync(join(ROOT, name), 'utf8')
const run = (program: string, ...args: string[]) =>
  execFileSync(program, args, { cwd: ROOT, stdio: 'inherit' })
const ask = (program: string, ...args: string[]) =>
  execFileSync(program, args, { cwd: ROOT }).toString().trim()

function refuse(why: string): never {
  console.error(`release: ${why}`)
  process.exit(1)
}

const { version } = JSON.parse(read('package.json')) as { version: string }
const notes = releaseNotes(read('CHANGELOG.md'), version)
if ('fault' in notes) refuse(notes.fault)
if (ask('git', 'status', '--porcelain') !== '') refuse('there are changes that are not committed')
if (ask('git', 'tag', '--list', `v${version}`) !== '') refuse(`the tag v${version} exists`)

run('npm', 'test')
rmSync(out, { recursive: true, force: true })
mkdirSync(out)
run('npm', 'run', '--silent', 'package')
run('npm', 'pack', '--silent', '--pack-destination', out)
writeFileSync(join(out, 'NOTES.md'), notes.text)
console.log(`Mayfly ${version} is in ${out}. To publish it: git tag v${version}, and upload the files.`)

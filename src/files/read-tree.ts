/** The files below a directory by their paths there, with `/`. None if there is no such directory. */
export function readTree(directory: string): Map<string, Buffer> {
  // Loaded here: each start of the command reads this module, and only a server needs the files.
  const { existsSync, readdirSync, readFileSync, statSync } = process.getBuiltinModule('node:fs')
  if (!existsSync(directory)) return new Map()
  const names = readdirSync(directory, { recursive: true, encoding: 'utf8' })
  const files = names.filter((name) => statSync(`${directory}/${name}`).isFile())
  return new Map(files.map((name) => [name.replaceAll('\\', '/'), readFileSync(`${directory}/${name}`)]))
}

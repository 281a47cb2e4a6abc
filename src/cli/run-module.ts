/** The word after which the executable runs a module of a plugin, in place of a verb. */
export const RUN_MODULE = '__plugin'

/**
 * The executable as the Node that runs a plugin: `NODE_OPTIONS` has its flags, because the executable reads no others. Only under
 * the permission model, so that nobody runs other code by it.
 */
export function runModule(entry: string): void {
  if (process.permission === undefined) {
    process.stderr.write('Only a server of Mayfly starts a plugin in this way.\n')
    process.exitCode = 1
    return
  }
  // As Node does: the module stands where the script does.
  process.argv.splice(1, 2)
  const { constants, Script } = process.getBuiltinModule('node:vm')
  const { pathToFileURL } = process.getBuiltinModule('node:url')
  // The executable's own `import` finds only what is inside it.
  const script = new Script('(url) => import(url)', {
    importModuleDynamically: constants.USE_MAIN_CONTEXT_DEFAULT_LOADER,
  })
  void (script.runInThisContext() as (url: string) => Promise<unknown>)(pathToFileURL(entry).href)
}

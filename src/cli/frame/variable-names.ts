const NAME = /^[A-Za-z_][A-Za-z0-9_]{0,127}$/

/**
 * These decide which program runs or what it loads. Neither a project file nor the fields of a credential may turn one
 * command into another.
 */
const STEERING = new RegExp(
  `^(?:${[
    'PATH|HOME|CDPATH|IFS|ENV|PS[0-4]|PROMPT_COMMAND|SHELL|SHELLOPTS|BASHOPTS|BASH_(?:ENV|FUNC_.*|LOADABLES_PATH)|ZDOTDIR',
    'LD_.*|DYLD_.*|GCONV_PATH|GLIBC_TUNABLES|XDG_.*|TMPDIR|OPENSSL_(?:CONF|CONF_INCLUDE|MODULES|ENGINES)',
    'NODE_(?:OPTIONS|PATH|COMPILE_CACHE)|NPM_CONFIG_(?:SCRIPT_SHELL|NODE_OPTIONS|GIT)|ELECTRON_RUN_AS_NODE',
    'PYTHON(?:PATH|HOME|STARTUP|BREAKPOINT|USERBASE|WARNINGS|INSPECT|PLATLIBDIR|PYCACHEPREFIX)',
    'PERL5?(?:LIB|OPT|DB)|RUBY(?:LIB|OPT|SHELL)|GEM_(?:HOME|PATH)|BUNDLE_GEMFILE',
    '_JAVA_OPTIONS|(?:JAVA_TOOL|JDK_JAVA)_OPTIONS|(?:MAVEN|GRADLE|SBT)_OPTS',
    'GO(?:ENV|FLAGS|ROOT|PATH|TOOLCHAIN)|RUSTC|RUSTFLAGS|(?:CARGO_BUILD_)?RUSTC_(?:WORKSPACE_)?WRAPPER|CARGO_HOME',
    'CC|CXX|LD|MAKEFILES|(?:GNU)?MAKEFLAGS|MFLAGS|CURL_HOME|PGSYSCONFDIR|TF_CLI_.*|ANSIBLE_CONFIG',
    'GIT_(?:SSH|SSH_.*|EXEC_PATH|EXTERNAL_DIFF|PROXY_COMMAND|TEMPLATE_DIR|ASKPASS|DIR|COMMON_DIR|WORK_TREE|CONFIG.*)',
    'SSH_ASKPASS|(?:.*_)?(?:EDITOR|PAGER|RSH|BROWSER)|VISUAL|LESSOPEN|LESSCLOSE|MAYFLY_.*',
  ].join('|')})$`,
)

/** Why a credential may not be put into this variable, or undefined. */
export function faultOfVariable(name: string): string | undefined {
  if (!NAME.test(name)) return 'is not a valid variable name'
  if (STEERING.test(name.toUpperCase())) return 'is a variable that mayfly does not set'
  return undefined
}

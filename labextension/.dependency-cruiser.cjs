/** Imports go one way: plugins → widgets | api → model; `tokens.ts` is what they share. */
module.exports = {
  forbidden: [
    {
      name: 'no-cycles',
      severity: 'error',
      from: {},
      to: { circular: true, viaOnly: { dependencyTypesNot: ['type-only'] } }
    },
    {
      name: 'model-is-pure',
      comment: 'The model knows no page, no widget and no server: it is tested in plain Node.',
      severity: 'error',
      from: { path: '^src/model' },
      to: { path: ['^src/(api|widgets|plugins)', 'node_modules/(@jupyterlab|react)'] }
    },
    {
      name: 'api-knows-the-model-alone',
      severity: 'error',
      from: { path: '^src/api' },
      to: { path: '^src/(widgets|plugins)' }
    },
    {
      name: 'widgets-do-not-ask-the-server',
      severity: 'error',
      from: { path: '^src/widgets' },
      to: { path: ['^src/(api|plugins)', 'node_modules/@jupyterlab/services'] }
    },
    {
      name: 'plugins-do-not-know-one-another',
      severity: 'error',
      from: { path: '^src/plugins' },
      to: { path: '^src/plugins' }
    },
    { name: 'no-unresolvable', severity: 'error', from: {}, to: { couldNotResolve: true } }
  ],
  options: {
    doNotFollow: { path: 'node_modules' },
    tsPreCompilationDeps: true,
    tsConfig: { fileName: 'tsconfig.json' },
    enhancedResolveOptions: {
      exportsFields: ['exports'],
      conditionNames: ['import', 'require', 'node', 'default', 'types'],
      mainFields: ['main', 'types']
    }
  }
};

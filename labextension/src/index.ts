import type { JupyterFrontEndPlugin } from '@jupyterlab/application';

import { cancelPlugin } from './plugins/cancel';
import { labPlugin } from './plugins/lab';
import { readyPlugin } from './plugins/ready';
import { sidebarPlugin } from './plugins/sidebar';
import { statusbarPlugin } from './plugins/statusbar';
import type { ILab } from './tokens';

const plugins: (JupyterFrontEndPlugin<void> | JupyterFrontEndPlugin<ILab>)[] = [
  labPlugin,
  cancelPlugin,
  readyPlugin,
  sidebarPlugin,
  statusbarPlugin
];

export default plugins;

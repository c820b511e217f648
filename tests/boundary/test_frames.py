"""pandas objects: changed in place, they are changed here; what shares nothing stays so."""

import pytest

from tests.boundary.two_sides import Notebook, check_as_in_order

DF = "df = pd.DataFrame({'a': [3, 1, 2], 'b': [1.5, None, 2.5], 's': ['x', 'y', 'z']})\n"
CASES = {
    "a_frame_that_did_not_change": (DF + "same = df", "n = len(df)\ny = df['a'].sum()"),
    "sorted_in_place": (DF + "same = df", "df.sort_values('a', inplace=True)\ny = same is df"),
    "a_new_column": (DF + "same = df", "df['n'] = df['a'] * 2\ndf.insert(0, 'first', 1)"),
    "a_cell_is_set": (
        DF + "same = df",
        "df.loc[1, 'a'] = 100\ndf.iat[0, 1] = -1\ndf.at[2, 's'] = 'long'",
    ),
    "a_column_goes": (DF, "del df['b']\ndf.drop(columns='s', inplace=True)"),
    "rows_go": (
        DF + "same = df",
        "df.dropna(inplace=True)\ndf.reset_index(drop=True, inplace=True)",
    ),
    "names_change": (
        DF,
        "df.rename(columns={'a': 'A'}, inplace=True)\ndf.index.name = 'i'\ndf.columns.name = 'c'",
    ),
    "columns_are_set": (DF + "same = df", "df.columns = ['p', 'q', 'r']"),
    "values_are_filled_in": (
        DF,
        "df.fillna(0, inplace=True)\ndf.replace({'s': {'x': 'w'}}, inplace=True)",
    ),
    "attributes": (
        DF + "df.attrs['unit'] = ['m']",
        "df.attrs['unit'].append('s')\ndf.attrs['more'] = 1",
    ),
    "a_series": (
        "s = pd.Series([1, 2, 3], name='n')\nt = s",
        "s[0] = 9\ns.name = 'm'\nt.iloc[2] = 7",
    ),
    "a_series_and_its_frame": (
        DF + "s = df['a']",
        "s.iloc[0] = 50\ny = df['a'].iloc[0]\ndf.loc[1, 'a'] = 70",
    ),
    "a_slice_and_its_frame": (
        DF + "h = df[:2]",
        "df.iloc[0, 0] = 8\ny = h.iloc[0, 0]\nh.iloc[1, 0] = 9",
    ),
    "a_frame_in_a_container": (DF + "d = {'df': [df]}", "d['df'][0]['n'] = 1\ny = df.shape"),
    "an_index_that_two_share": (
        DF + "df2 = df.copy()\ndf2.index = df.index\nix = df.index",
        "df.index.name = 'i'\ny = df2.index.name, ix.name",
    ),
    "an_index": (
        "ix = pd.Index([1, 2], name='a')\nm = pd.MultiIndex.from_tuples([(1, 'a')], names=['x', 'y'])",
        "ix.name = 'b'\nm.names = ['p', 'q']\nj = ix.union([3])",
    ),
    "objects_in_cells": (
        "xs = [1]\ndf = pd.DataFrame({'o': [xs, {'k': xs}]})",
        "df['o'][0].append(2)\ny = xs",
    ),
    "categories_and_times": (
        "df = pd.DataFrame({'c': pd.Categorical(['a', 'b']), 't': pd.date_range('2020-01-01', periods=2),\n"
        "    'z': pd.date_range('2020-01-01', periods=2, tz='UTC'), 'i': pd.array([1, None], dtype='Int64')})",
        "df.loc[0, 'i'] = 5\ndf.loc[1, 't'] = pd.Timestamp('2021-05-05')\ndf.loc[1, 'c'] = 'a'\ny = df['z'].dt.year.tolist()",
    ),
    "extension_arrays": (
        "a = pd.array([1, None], dtype='Int64')\nc = pd.Categorical(['a', 'b'])",
        "a[0] = 7\nc[0] = 'b'\nd = a + 1",
    ),
    "groups": (DF + "g = df.groupby('s')", "y = g['a'].sum().tolist()"),
    "a_new_frame": (
        "",
        DF + "t = df.T\nh = df.head(2)\ng = df.groupby('s').sum(numeric_only=True)",
    ),
    "values_of_a_frame_that_changes": (
        "df = pd.DataFrame({'a': [1., 2.]})\nv = df['a'].to_numpy()",
        "df.iloc[0, 0] = 9\ny = v.sum()",
    ),
    "values_of_a_series_made_there": (
        "s = pd.Series([1., 2.])",
        "v = s.to_numpy()\ny = v.flags.writeable",
    ),
    "a_large_frame": (
        "import numpy as np\ndf = pd.DataFrame(np.zeros((50000, 4)), columns=list('abcd'))",
        "df.iloc[100, 2] = 5",
    ),
    "a_subclass": (
        "class F(pd.DataFrame):\n    _metadata = ['tag']\n    @property\n    def _constructor(self): return F\n"
        "f = F({'a': [1]})\nf.tag = ['t']",
        "f['b'] = 2\nf.tag.append('u')\ng = f[['a']]\ny = type(g).__name__, g.tag",
    ),
}


@pytest.mark.parametrize(("before", "cell"), CASES.values(), ids=CASES)
def test_as_in_order(notebook: Notebook, before: str, cell: str) -> None:
    check_as_in_order(notebook, f"import pandas as pd\n{before}", cell)


def test_a_frame_that_was_only_read_does_not_come_back(notebook: Notebook) -> None:
    notebook.start(
        "import pandas as pd\ndf = pd.DataFrame({'t': pd.date_range('2020-01-01', periods=3),"
        " 'c': pd.Categorical(list('aba')), 's': list('xyz')})"
    )
    changes = notebook.cross(
        "y = df['t'].dt.year.sum(), df['c'].cat.codes.sum(), df.groupby('s').ngroups"
    )
    assert changes.changed == []

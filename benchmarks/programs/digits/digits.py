"""Recognise handwritten digits with a random forest."""

from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import accuracy_score
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler


def main():
    X, y = load_digits(return_X_y=True)
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.5, random_state=0, stratify=y)

    model = make_pipeline(
        StandardScaler(),
        PCA(n_components=16, random_state=42),
        RandomForestClassifier(
            n_estimators=40,
            max_depth=6,
            min_samples_leaf=4,
            max_features=0.3,
            n_jobs=1,
            random_state=42,
        ),
    )
    model.fit(X_train, y_train)

    accuracy = accuracy_score(y_test, model.predict(X_test))
    print(f"Accuracy: {accuracy:.4f}")


if __name__ == "__main__":
    main()
